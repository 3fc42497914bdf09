//! Progress on standard error, and only where a person is looking.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that says what is going on. It shows itself on a terminal only, and is gone when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Work with a known number of steps.
    pub fn steps(total: u64) -> Progress {
        let style = ProgressStyle::with_template("[{pos}/{len}] {wide_bar} {msg} ({eta} left)");
        Progress::with_style(ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr()), style)
    }

    /// Work of unknown length.
    pub fn waiting(message: impl Into<String>) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let progress = Progress::with_style(bar, ProgressStyle::with_template("{spinner} {msg} ({elapsed})"));
        progress.say(message);
        progress
    }

    fn with_style(
        bar: ProgressBar,
        style: Result<ProgressStyle, indicatif::style::TemplateError>,
    ) -> Progress {
        // The templates are constants; one that does not parse leaves the default style.
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress { bar }
    }

    /// What is being done now.
    pub fn say(&self, message: impl Into<String>) {
        self.bar.set_message(message.into());
    }

    /// One more step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
