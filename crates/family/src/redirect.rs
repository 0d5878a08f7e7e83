//! Redirects: a request to one family that another family serves. Tools offer the fields of both
//! families under the first.

use crate::error::FamilyError;
use crate::family::{DeviceKind, Family, Redirects};
use crate::field::{Field, FieldKind, Keyword};
use crate::request::{FamilyFields, Request};

/// An operation on a request, generic over the family that serves it.
pub(crate) trait ReadRequest {
    /// The result.
    type Output;
    /// Runs the operation with the family `F`.
    fn read<F: Family>(&self, request: &Request) -> Result<Self::Output, FamilyError>;
}

/// Runs `task` with the family that serves a request to `F`.
pub(crate) fn read<F: Family, R: ReadRequest>(
    request: &Request,
    device: DeviceKind,
    task: &R,
) -> Result<R::Output, FamilyError> {
    let mut redirect = Redirect {
        request,
        device,
        named_fields: FamilyFields::of::<F>,
        task,
        result: None,
    };
    F::redirects(&mut redirect);
    match redirect.result {
        Some(result) => result,
        None => task.read::<F>(request),
    }
}

/// Describes the fields of `F` and of the families that it redirects to.
pub(crate) fn fields<F: Family>(device: DeviceKind) -> FamilyFields {
    let mut all = AllFields {
        device,
        fields: FamilyFields::of::<F>(device),
    };
    F::redirects(&mut all);
    all.fields
}

/// Formats a field value as a flag: `--dtype nvfp4`.
fn flag(field: &str, word: &str) -> String {
    format!("--{} {word}", field.replace('_', "-"))
}

/// Finds the family that serves a request and runs the task with it.
struct Redirect<'a, R: ReadRequest> {
    request: &'a Request,
    device: DeviceKind,
    /// Describes the fields of the family that the request names.
    named_fields: fn(DeviceKind) -> FamilyFields,
    task: &'a R,
    /// The result, if another family serves the request.
    result: Option<Result<R::Output, FamilyError>>,
}

impl<R: ReadRequest> Redirects for Redirect<'_, R> {
    fn family<F: Family>(&mut self, field: &'static str, keyword: Keyword) {
        let other = FamilyFields::of::<F>(self.device);
        let is_redirected = (self.request.get(field)).is_some_and(|value| keyword.matches(value));
        self.result = match is_redirected {
            true => Some(self.redirect::<F>(field, &keyword, &other)),
            false => {
                let error = self.check_foreign_fields(F::NAME, field, &keyword, &other);
                self.result.take().or(error.map(Err))
            }
        };
    }
}

impl<R: ReadRequest> Redirect<'_, R> {
    /// Runs the task with `F`. Rejects fields that `F` does not have.
    fn redirect<F: Family>(
        &self,
        field: &str,
        keyword: &Keyword,
        other: &FamilyFields,
    ) -> Result<R::Output, FamilyError> {
        let request = self.request.without(field);
        let named = (self.named_fields)(self.device);
        let mut names = request.names().filter(|name| other.get(name).is_none());
        let unknown = names.find_map(|name| named.get(name));
        if let Some(unknown) = unknown {
            let fields: Vec<_> = other.iter().map(Field::flag).collect();
            let text = format!(
                "{flag} cannot be combined with {}: the family {} has no such field\n\
                 help: remove {flag}; the fields are {}",
                self::flag(field, keyword.name),
                F::NAME,
                fields.join(", "),
                flag = unknown.flag(),
            );
            return Err(match named.config.iter().any(|f| f.name == unknown.name) {
                true => FamilyError::Config(text),
                false => FamilyError::Problem(text),
            });
        }
        self.task.read::<F>(&request)
    }

    /// Returns an error if the request sets a field of the other family without the redirecting
    /// keyword.
    fn check_foreign_fields(
        &self,
        family: &str,
        field: &str,
        keyword: &Keyword,
        other: &FamilyFields,
    ) -> Option<FamilyError> {
        let named = (self.named_fields)(self.device);
        let mut names = (self.request.names()).filter(|name| named.get(name).is_none());
        let foreign = names.find_map(|name| other.get(name))?.flag();
        let required = flag(field, keyword.name);
        Some(FamilyError::Problem(format!(
            "{foreign} requires {required} (the family {family})\nhelp: add {required}, or remove {foreign}"
        )))
    }
}

/// Collects the fields of a family and of the families that it redirects to.
struct AllFields {
    device: DeviceKind,
    fields: FamilyFields,
}

impl Redirects for AllFields {
    fn family<F: Family>(&mut self, field: &'static str, keyword: Keyword) {
        let requires = flag(field, keyword.name);
        let other = FamilyFields::of::<F>(self.device);
        merge_fields(&mut self.fields.problem, other.problem, &requires);
        merge_fields(&mut self.fields.config, other.config, &requires);
        let all = self.fields.problem.iter_mut();
        let all = all.chain(&mut self.fields.config);
        for redirecting in all.filter(|f| f.name == field) {
            add_keywords(&mut redirecting.kind, vec![keyword]);
        }
    }
}

/// Adds the fields that are missing, and the keywords of the fields that exist.
fn merge_fields(all: &mut Vec<Field>, others: Vec<Field>, requires: &str) {
    for mut other in others {
        match all.iter_mut().find(|f| f.name == other.name) {
            Some(existing) => {
                if let FieldKind::Keywords(keywords) = other.kind {
                    add_keywords(&mut existing.kind, keywords);
                }
            }
            None => {
                other.requires = Some(requires.to_owned());
                all.push(other);
            }
        }
    }
}

/// Adds the keywords that the field does not accept yet.
fn add_keywords(kind: &mut FieldKind, keywords: Vec<Keyword>) {
    if let FieldKind::Keywords(accepted) = kind {
        let new = keywords
            .into_iter()
            .filter(|keyword| !accepted.iter().any(|k| k.matches(keyword.name)));
        let new: Vec<_> = new.collect();
        accepted.extend(new);
    }
}
