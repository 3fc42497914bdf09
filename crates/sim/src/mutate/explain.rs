//! Mutants that are not as they should be need a reason, one by one.

use super::trial::{Agreement, Trial};

/// A mutant with a reason why it may survive, or why no order of threads shows what is wrong with it.
pub struct Explained {
    /// The case whose program it is a mutant of.
    pub case: &'static str,
    /// The name of its kind.
    pub kind: &'static str,
    /// A part of its site that no other mutant of this kind and case has.
    pub site: &'static str,
    /// Why it is as it is.
    pub because: &'static str,
}

/// Makes a line of a list.
pub const fn explained(
    case: &'static str,
    kind: &'static str,
    site: &'static str,
    because: &'static str,
) -> Explained {
    Explained { case, kind, site, because }
}

/// What is wrong with trials: mutants that nobody caught and that are not among the `survivors`, mutants that no order
/// of threads shows and that are not among the `unseen`, engines that disagree, and lines of the two lists that no
/// mutant needs.
pub fn faults(trials: &[Trial<'_>], survivors: &[Explained], unseen: &[Explained]) -> Vec<String> {
    let (mut survivors, mut unseen): (Vec<_>, Vec<_>) = (survivors.iter().collect(), unseen.iter().collect());
    let mut faults = Vec::new();
    for trial in trials {
        let (case, kind, site) = (&trial.case.name, trial.mutant.kind.name, &trial.mutant.site);
        let mut fault =
            |what: &str| faults.push(format!("{what}: {case}: {kind}: {site}: {:?}", trial.verdict));
        let needs = |list: &mut Vec<&Explained>| {
            let at = list.iter().position(|e| e.case == case && e.kind == kind && site.contains(e.site));
            at.map(|at| list.swap_remove(at)).is_some()
        };
        if !trial.verdict.caught() && !needs(&mut survivors) {
            fault("nobody caught it, and nobody says why");
        }
        match trial.verdict.agreement() {
            Agreement::Clean | Agreement::Shown => {}
            Agreement::Unseen if needs(&mut unseen) => {}
            Agreement::Unseen => fault("no order of threads shows it, and nobody says why"),
            Agreement::Disagreement => fault("the SIMT engine and threads in random order disagree"),
        }
    }
    for (list, what) in [(survivors, "is caught"), (unseen, "is shown by threads")] {
        let line = |e: &Explained| format!("{what} or no longer drawn: {}: {}: {}", e.case, e.kind, e.site);
        faults.extend(list.into_iter().map(line));
    }
    faults
}
