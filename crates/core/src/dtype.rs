//! Element types.

use std::fmt;
use std::str::FromStr;

use crate::diag::Diagnosis;

/// The type of an element as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Complex number of two binary32, real part first.
    C64,
    /// Complex number of two binary64, real part first.
    C128,
    /// Two's-complement 32-bit integer; arithmetic wraps.
    I32,
}

impl DType {
    /// Every element type, in the order of the table in the documentation.
    pub const ALL: [DType; 7] =
        [DType::F16, DType::Bf16, DType::F32, DType::F64, DType::C64, DType::C128, DType::I32];

    /// The name used in programs, on the command line and in results: NumPy's, shortened.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "c64",
            DType::C128 => "c128",
            DType::I32 => "i32",
        }
    }

    /// Bytes of one stored element.
    pub const fn bytes(self) -> i64 {
        match self {
            DType::F16 | DType::Bf16 => 2,
            DType::F32 | DType::I32 => 4,
            DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// Whether elements are pairs of a real and an imaginary part.
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// The type of the parts of a complex element; other elements are their own.
    pub const fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// Whether elements are rounded to 16 bits when stored.
    pub const fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::Bf16)
    }

    /// The type in which products of such elements are summed unless a program says otherwise.
    pub const fn accumulator(self) -> DType {
        match self {
            DType::F16 | DType::Bf16 => DType::F32,
            other => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = Diagnosis;

    fn from_str(text: &str) -> Result<DType, Diagnosis> {
        DType::ALL.into_iter().find(|t| t.name() == text).ok_or_else(|| {
            let known: Vec<_> = DType::ALL.iter().map(|t| t.name()).collect();
            Diagnosis::new(format!("unknown element type `{text}`"))
                .instead(format!("use one of {}", known.join(", ")))
        })
    }
}
