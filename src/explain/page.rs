//! An explanation as one self-contained page.

use super::Explanation;
use crate::report::page::document;

impl Explanation {
    /// The page.
    pub fn page(&self) -> String {
        document(&format!("{} explained", self.kernel.name), "")
    }
}
