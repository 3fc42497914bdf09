//! Spellings: the small named device functions that kernels call, one file per family. Inline PTX stands here only.
//!
//! A kernel's text carries exactly the functions it uses, each after those it needs itself.

pub(super) mod async_copy;
pub(super) mod atomic;
pub(super) mod barrier;
pub(super) mod chained;
pub(super) mod complex;
pub(super) mod convert;
pub(super) mod integer;
pub(super) mod launch;
pub(super) mod matrix;
pub(super) mod mbarrier;
pub(super) mod sign;
pub(super) mod tensor_map;
pub(super) mod wgmma;

/// A device function, with its own comment, or a type.
#[derive(Debug)]
pub(super) struct Helper {
    /// What it calls.
    pub(super) needs: &'static [&'static Helper],
    /// Its text.
    pub(super) text: &'static str,
}

/// The functions that a translation unit starts with, in an order in which each is defined before it is used.
#[derive(Clone, Debug, Default)]
pub(super) struct Prelude {
    texts: Vec<String>,
    functions: Vec<String>,
}

impl Prelude {
    /// Includes a function and what it needs.
    pub(super) fn require(&mut self, helper: &Helper) {
        for needed in helper.needs {
            self.require(needed);
        }
        self.require_text(helper.text);
    }

    /// Includes a function whose text was made for the occasion.
    pub(super) fn require_text(&mut self, text: &str) {
        if !self.texts.iter().any(|t| t == text) {
            self.texts.push(text.to_string());
        }
    }

    /// Includes a function made for the occasion and gives its name: the wanted one, or that and a number. `text` makes
    /// the function of its name; one that is the same but for its name is there already.
    pub(super) fn function(&mut self, wanted: &str, text: impl Fn(&str) -> String) -> String {
        let mut number = 1;
        loop {
            let name = if number == 1 { wanted.to_string() } else { format!("{wanted}_{number}") };
            let text = text(&name);
            if self.texts.contains(&text) {
                return name;
            }
            if !self.functions.contains(&name) {
                self.functions.push(name.clone());
                self.texts.push(text);
                return name;
            }
            number += 1;
        }
    }

    /// The text of all of them: one-line ones stand together, longer ones are set apart.
    pub(super) fn text(&self) -> String {
        let (mut out, mut was_long) = (String::new(), false);
        for (i, text) in self.texts.iter().enumerate() {
            let long = text.trim_end().contains('\n');
            if i > 0 && (long || was_long) {
                out.push('\n');
            }
            out.push_str(text.trim_end());
            out.push('\n');
            was_long = long;
        }
        out
    }
}
