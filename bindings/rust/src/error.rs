//! Errors of plait.

use std::fmt;

/// What kind of error it is; the Python documentation names the same kinds as exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Runtime,
    Shape,
    DType,
    Value,
    Index,
    Type,
    Memory,
    NotImplemented,
    Timeout,
}

impl Kind {
    /// The kind of a negative `plait_status`; those of run.h are the same numbers.
    pub(crate) fn of(status: i32) -> Kind {
        match status {
            -2 => Kind::Shape,
            -3 => Kind::DType,
            -4 => Kind::Value,
            -5 => Kind::Index,
            -6 => Kind::Type,
            -7 => Kind::Memory,
            -8 => Kind::NotImplemented,
            -10 => Kind::Timeout,
            _ => Kind::Runtime,
        }
    }
}

/// An error, whose text names the operator and the argument.
#[derive(Clone, Debug)]
pub struct Error {
    kind: Kind,
    message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }
    pub fn kind(&self) -> Kind {
        self.kind
    }
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
