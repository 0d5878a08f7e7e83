//! The problem of a row-wise family.

use serde_json::Value;
use warpline_family::error::FamilyError;
use warpline_family::field::{Field, FieldError, Fields};
use warpline_family::fields;
use warpline_family::float::FloatType;
use warpline_family::numbers::Random;
use warpline_family::tensor::TensorSpec;

fields! {
    /// The input matrix x; the output y has the same shape.
    pub struct Matrix {
        /// Rows of the matrix
        pub rows: u64,
        /// Elements of each row
        pub cols: u64,
        /// Element type
        pub dtype: FloatType,
        /// Elements from one row of x to the next (default: dense rows)
        pub x_stride: Option<i64> [ELEMENTS],
        /// Elements from one row of y to the next (default: dense rows)
        pub y_stride: Option<i64> [ELEMENTS],
    }
}

/// The matrix, and the options of the op.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem<O> {
    /// The matrix.
    pub matrix: Matrix,
    /// The options of the op.
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

/// The validated extents and strides of x and y.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Shape {
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) dtype: FloatType,
    pub(super) x_stride: u64,
    pub(super) y_stride: u64,
}

/// The maximum number of rows and of columns.
pub(super) const MAX_EXTENT: u32 = u32::MAX / 2;

/// The maximum size of a matrix in bytes.
const MAX_BYTES: u64 = 1 << 42;

impl<O> Problem<O> {
    /// Creates a problem with dense rows.
    pub fn dense(rows: u64, cols: u64, dtype: FloatType, options: O) -> Self {
        let matrix = Matrix {
            rows,
            cols,
            dtype,
            x_stride: None,
            y_stride: None,
        };
        Self { matrix, options }
    }

    /// Validates extents and strides.
    pub(super) fn shape(&self) -> Result<Shape, FamilyError> {
        self.matrix.shape()
    }
}

impl Matrix {
    /// Draws a matrix of at most [`MAX_BYTES`] with dense or padded rows.
    pub(super) fn draw(random: &mut Random) -> Self {
        let max = u64::from(MAX_EXTENT);
        let cols = random.extent(1..=max);
        let dtype = random.pick(FloatType::ALL);
        let mut stride = || {
            let padded = cols + random.extent(0..=1 << 20);
            random.percent(30).then_some(padded as i64)
        };
        let (x_stride, y_stride) = (stride(), stride());
        let widest = [Some(cols as i64), x_stride, y_stride]
            .into_iter()
            .flatten()
            .max();
        let row_bytes = widest.unwrap_or(1) as u64 * dtype.dtype().bytes() as u64;
        Self {
            rows: random.extent(0..=max.min(MAX_BYTES / row_bytes)),
            cols,
            dtype,
            x_stride,
            y_stride,
        }
    }

    /// Validates extents and strides.
    pub(super) fn shape(&self) -> Result<Shape, FamilyError> {
        let reject = |text: String| Err(FamilyError::Problem(text));
        if self.cols == 0 {
            return reject("--cols is 0, but a row must have at least 1 element".into());
        }
        let max = u64::from(MAX_EXTENT);
        if self.cols > max {
            return reject(format!(
                "a row of {} elements is longer than the limit of {max}",
                self.cols
            ));
        }
        if self.rows > max {
            return reject(format!(
                "{} rows are more than the limit of {max}",
                self.rows
            ));
        }
        let stride = |name: &str, value: Option<i64>| -> Result<u64, FamilyError> {
            let stride = value.unwrap_or(self.cols as i64);
            let text = if stride < 0 {
                format!("--{name} is {stride}, but must not be negative")
            } else if (stride as u64) < self.cols {
                format!(
                    "--{name} is {stride}, less than the {} columns: rows must not overlap",
                    self.cols
                )
            } else if stride > i64::from(u32::MAX) {
                format!("--{name} is {stride}, but the limit is {}", u32::MAX)
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
            Some(n) if n <= MAX_BYTES => Ok(shape),
            _ => reject(format!(
                "a matrix of {} rows of {widest} elements exceeds the limit of {MAX_BYTES} bytes",
                self.rows
            )),
        }
    }
}

impl Shape {
    /// Returns whether all rows start and end on 16 bytes.
    pub(super) fn is_aligned(&self) -> bool {
        let size = self.dtype.dtype().bytes() as u64;
        [self.cols, self.x_stride, self.y_stride]
            .iter()
            .all(|n| (n * size).is_multiple_of(16))
    }

    /// Returns the bytes of a row.
    pub(super) fn row_bytes(&self) -> u64 {
        self.cols * self.dtype.dtype().bytes() as u64
    }

    /// Returns the units of a row: 16-byte vectors or single elements.
    pub(super) fn units(&self, vectors: bool) -> u64 {
        if vectors {
            self.row_bytes() / 16
        } else {
            self.cols
        }
    }

    /// Returns the spec of a matrix in memory, including the padding of strided rows.
    pub(super) fn matrix(&self, name: &'static str, stride: u64) -> TensorSpec {
        TensorSpec {
            name,
            dtype: self.dtype.dtype(),
            shape: vec![self.rows as usize, stride as usize],
        }
    }
}
