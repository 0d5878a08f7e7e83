//! Requests to a family that are meant for another: the fields of both are offered under the first,
//! and the other reads the request.

use crate::error::FamilyError;
use crate::family::{Family, Place, Redirects};
use crate::field::{Field, Kind, Word};
use crate::request::{FamilyFields, Request};

/// A function of a family and a request.
pub(crate) trait ReadRequest {
    /// The result.
    type Output;
    /// Reads the request as the family `F` does.
    fn read<F: Family>(&self, request: &Request) -> Result<Self::Output, FamilyError>;
}

/// Reads a request to `F` as the family that it is meant for does.
pub(crate) fn read<F: Family, R: ReadRequest>(
    request: &Request,
    place: Place,
    task: &R,
) -> Result<R::Output, FamilyError> {
    let mut meant = Meant {
        request,
        place,
        own: FamilyFields::of::<F>,
        task,
        read: None,
    };
    F::redirects(&mut meant);
    match meant.read {
        Some(read) => read,
        None => task.read::<F>(request),
    }
}

/// Describes the fields that a request to `F` may have.
pub(crate) fn fields<F: Family>(place: Place) -> FamilyFields {
    let mut all = AllFields {
        place,
        fields: FamilyFields::of::<F>(place),
    };
    F::redirects(&mut all);
    all.fields
}

/// A value of a field as the command line has it: `--dtype nvfp4`.
fn flag(field: &str, word: &str) -> String {
    format!("--{} {word}", field.replace('_', "-"))
}

/// Finds the family that a request is meant for, and has it read the request.
struct Meant<'a, R: ReadRequest> {
    request: &'a Request,
    place: Place,
    /// Describes the fields of the family that is asked.
    own: fn(Place) -> FamilyFields,
    task: &'a R,
    /// The answer, where it is not that family's.
    read: Option<Result<R::Output, FamilyError>>,
}

impl<R: ReadRequest> Redirects for Meant<'_, R> {
    fn family<F: Family>(&mut self, field: &'static str, word: Word) {
        let other = FamilyFields::of::<F>(self.place);
        let is_meant = (self.request.get(field)).is_some_and(|value| word.is(value));
        self.read = match is_meant {
            true => Some(self.redirect::<F>(field, &word, &other)),
            false => {
                let foreign = self.foreign(F::NAME, field, &word, &other);
                self.read.take().or(foreign.map(Err))
            }
        };
    }
}

impl<R: ReadRequest> Meant<'_, R> {
    /// Has `F` read the request, unless it has fields that are not `F`'s.
    fn redirect<F: Family>(
        &self,
        field: &str,
        word: &Word,
        other: &FamilyFields,
    ) -> Result<R::Output, FamilyError> {
        let (request, own) = (self.request.without(field), (self.own)(self.place));
        let mut names = request.names().filter(|name| other.get(name).is_none());
        let unknown = names.find_map(|name| own.get(name));
        if let Some(unknown) = unknown {
            let fields: Vec<_> = other.iter().map(Field::flag).collect();
            let text = format!(
                "{flag} does not go with {}: the family {} has no such field\n\
                 help: leave {flag} out; the fields are {}",
                self::flag(field, word.name),
                F::NAME,
                fields.join(", "),
                flag = unknown.flag(),
            );
            return Err(match own.config.iter().any(|f| f.name == unknown.name) {
                true => FamilyError::Config(text),
                false => FamilyError::Problem(text),
            });
        }
        self.task.read::<F>(&request)
    }

    /// Rejects a field that only the other family has, in a request that is not meant for it.
    fn foreign(
        &self,
        family: &str,
        field: &str,
        word: &Word,
        other: &FamilyFields,
    ) -> Option<FamilyError> {
        let own = (self.own)(self.place);
        let mut names = (self.request.names()).filter(|name| own.get(name).is_none());
        let foreign = names.find_map(|name| other.get(name))?.flag();
        let given = flag(field, word.name);
        Some(FamilyError::Problem(format!(
            "{foreign} requires {given} (the family {family})\nhelp: add {given}, or leave {foreign} out"
        )))
    }
}

/// Collects the fields of a family and of those that its requests may be meant for.
struct AllFields {
    place: Place,
    fields: FamilyFields,
}

impl Redirects for AllFields {
    fn family<F: Family>(&mut self, field: &'static str, word: Word) {
        let requires = flag(field, word.name);
        let other = FamilyFields::of::<F>(self.place);
        add(&mut self.fields.problem, other.problem, &requires);
        add(&mut self.fields.config, other.config, &requires);
        let all = self.fields.problem.iter_mut();
        let all = all.chain(&mut self.fields.config);
        for own in all.filter(|own| own.name == field) {
            add_words(&mut own.kind, vec![word]);
        }
    }
}

/// Adds fields, or the words that they take where there are such fields.
fn add(all: &mut Vec<Field>, others: Vec<Field>, requires: &str) {
    for mut other in others {
        match all.iter_mut().find(|own| own.name == other.name) {
            Some(own) => {
                if let Kind::Words(words) = other.kind {
                    add_words(&mut own.kind, words);
                }
            }
            None => {
                other.requires = Some(requires.to_owned());
                all.push(other);
            }
        }
    }
}

/// Adds words to those that a field takes.
fn add_words(kind: &mut Kind, words: Vec<Word>) {
    if let Kind::Words(own) = kind {
        let new = words
            .into_iter()
            .filter(|word| !own.iter().any(|w| w.is(word.name)));
        let new: Vec<_> = new.collect();
        own.extend(new);
    }
}
