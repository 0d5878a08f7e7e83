//! The problem of a family over rows.

use serde_json::Value;
use warpline_family::error::FamilyError;
use warpline_family::field::{Field, FieldError, Fields};
use warpline_family::fields;
use warpline_family::float::Float;
use warpline_family::tensor::TensorSpec;

fields! {
    /// The matrix x, and y, which has its shape.
    pub struct Matrix {
        /// Rows of the matrix
        pub rows: u64,
        /// Elements of each row
        pub cols: u64,
        /// Element type
        pub dtype: Float,
        /// Elements from one row of x to the next; dense rows where not given
        pub x_stride: Option<i64> [ELEMENTS],
        /// Elements from one row of y to the next; dense rows where not given
        pub y_stride: Option<i64> [ELEMENTS],
    }
}

/// The problem: a matrix, and the family's own options.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem<O> {
    /// The matrix.
    pub matrix: Matrix,
    /// The family's own options.
    pub options: O,
}

impl<O: Fields> Fields for Problem<O> {
    fn fields() -> Vec<Field> {
        [Matrix::fields(), O::fields()].concat()
    }
    fn set(&mut self, name: &str, text: &str) -> Result<(), FieldError> {
        match self.matrix.set(name, text) {
            Err(FieldError::Unknown(_)) => self.options.set(name, text),
            done => done,
        }
    }
    fn check(&self) -> Result<(), FieldError> {
        self.matrix.check()?;
        self.options.check()
    }
    fn json(&self) -> Value {
        let mut all = self.matrix.json();
        if let (Value::Object(all), Value::Object(more)) = (&mut all, self.options.json()) {
            all.extend(more);
        }
        all
    }
    fn or(&self, base: &Self) -> Self {
        Self {
            matrix: self.matrix.or(&base.matrix),
            options: self.options.or(&base.options),
        }
    }
}

/// A matrix in and a matrix out, both legal.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Shape {
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) dtype: Float,
    pub(super) x_stride: u64,
    pub(super) y_stride: u64,
}

/// The most rows and columns of a matrix.
pub(super) const MOST_SIDE: u32 = u32::MAX / 2;

/// The most bytes of a matrix.
const MOST_BYTES: u64 = 1 << 42;

impl<O> Problem<O> {
    /// Dense rows.
    pub fn dense(rows: u64, cols: u64, dtype: Float, options: O) -> Self {
        let matrix = Matrix {
            rows,
            cols,
            dtype,
            x_stride: None,
            y_stride: None,
        };
        Self { matrix, options }
    }

    /// The matrices, or why there are none.
    pub(super) fn shape(&self) -> Result<Shape, FamilyError> {
        self.matrix.shape()
    }
}

impl Matrix {
    /// The matrices, or why there are none.
    pub(super) fn shape(&self) -> Result<Shape, FamilyError> {
        let refuse = |text: String| Err(FamilyError::Problem(text));
        if self.cols == 0 {
            return refuse("a row has at least 1 element, not 0 (--cols 0)".into());
        }
        let most = u64::from(MOST_SIDE);
        if self.cols > most {
            return refuse(format!(
                "a row has at most {most} elements, not {}",
                self.cols
            ));
        }
        if self.rows > most {
            return refuse(format!(
                "a matrix has at most {most} rows, not {}",
                self.rows
            ));
        }
        let stride = |name: &str, given: Option<i64>| -> Result<u64, FamilyError> {
            let stride = given.unwrap_or(self.cols as i64);
            let text = if stride < 0 {
                format!(
                    "rows follow each other upwards, so --{name} is not negative, as {stride} is"
                )
            } else if (stride as u64) < self.cols {
                format!(
                    "rows must not overlap: --{name} is at least the {} columns, not {stride}",
                    self.cols
                )
            } else if stride > i64::from(u32::MAX) {
                format!("--{name} is at most {}, not {stride}", u32::MAX)
            } else {
                return Ok(stride as u64);
            };
            Err(FamilyError::Problem(text))
        };
        let shape = Shape {
            rows: self.rows,
            cols: self.cols,
            dtype: self.dtype,
            x_stride: stride("x-stride", self.x_stride)?,
            y_stride: stride("y-stride", self.y_stride)?,
        };
        let size = self.dtype.dtype().bytes() as u64;
        let widest = shape.x_stride.max(shape.y_stride);
        let bytes = self
            .rows
            .checked_mul(widest)
            .and_then(|n| n.checked_mul(size));
        match bytes {
            Some(n) if n <= MOST_BYTES => Ok(shape),
            _ => refuse(format!(
                "{} rows of {widest} elements are more than the {MOST_BYTES} bytes that a matrix may have",
                self.rows
            )),
        }
    }
}

impl Shape {
    /// Do all rows start and end on 16 bytes?
    pub(super) fn aligned(&self) -> bool {
        let size = self.dtype.dtype().bytes() as u64;
        [self.cols, self.x_stride, self.y_stride]
            .iter()
            .all(|n| (n * size).is_multiple_of(16))
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> u64 {
        self.cols * self.dtype.dtype().bytes() as u64
    }

    /// Units of a row: 16 bytes, or single elements.
    pub(super) fn units(&self, vectors: bool) -> u64 {
        if vectors {
            self.row_bytes() / 16
        } else {
            self.cols
        }
    }

    /// A matrix as it lies in memory: the padding of strided rows is part of it.
    pub(super) fn matrix(&self, name: &'static str, stride: u64) -> TensorSpec {
        TensorSpec {
            name,
            dtype: self.dtype.dtype(),
            shape: vec![self.rows as usize, stride as usize],
        }
    }
}
