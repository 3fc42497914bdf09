//! Bodies: lists of statements that copies share.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::statement::Stmt;

/// The statements inside a statement.
///
/// Every step of a schedule makes a program that differs from the last one in a few places. Copies of a body share its
/// statements, so all other places cost nothing; a body that is changed while it is shared is copied first, one level
/// deep.
#[derive(Clone, Debug, Default)]
pub struct Body(Arc<Vec<Stmt>>);

impl Body {
    /// The statements, to be put somewhere else; what is left is empty.
    pub fn take(&mut self) -> Vec<Stmt> {
        std::mem::take(self).into()
    }

    /// Whether two bodies are the same one, not only equal.
    pub fn is(&self, other: &Body) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Body {
    type Target = Vec<Stmt>;

    fn deref(&self) -> &Vec<Stmt> {
        &self.0
    }
}

impl DerefMut for Body {
    fn deref_mut(&mut self) -> &mut Vec<Stmt> {
        Arc::make_mut(&mut self.0)
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        self.is(other) || self.0 == other.0
    }
}

impl From<Vec<Stmt>> for Body {
    fn from(stmts: Vec<Stmt>) -> Body {
        Body(Arc::new(stmts))
    }
}

impl From<Body> for Vec<Stmt> {
    fn from(body: Body) -> Vec<Stmt> {
        Arc::unwrap_or_clone(body.0)
    }
}

impl FromIterator<Stmt> for Body {
    fn from_iter<T: IntoIterator<Item = Stmt>>(stmts: T) -> Body {
        stmts.into_iter().collect::<Vec<_>>().into()
    }
}

impl IntoIterator for Body {
    type Item = Stmt;
    type IntoIter = std::vec::IntoIter<Stmt>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'a> IntoIterator for &'a Body {
    type Item = &'a Stmt;
    type IntoIter = std::slice::Iter<'a, Stmt>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Body {
    type Item = &'a mut Stmt;
    type IntoIter = std::slice::IterMut<'a, Stmt>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
