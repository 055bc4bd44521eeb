//! The progress of a build, from the lines `Step 2/5 : …` of the builder.

use super::from_source::LABELS;

/// The share of the build in the progress, in percent. The push is the rest.
const BUILT: usize = 90;

/// The last step that the builder announced. A program in the build can print such lines too, so
/// only the line of the next step counts.
#[derive(Debug, Default)]
pub(super) struct Steps {
    last: usize,
    all: usize,
}

impl Steps {
    /// The progress in percent, if the line announces the next step.
    pub fn reached(&mut self, line: &str) -> Option<u8> {
        let (step, all) = line.strip_prefix("Step ")?.split_once(" : ")?.0.split_once('/')?;
        let (step, all) = (step.parse::<usize>().ok()?, all.parse::<usize>().ok()?);
        let is_next = step == self.last + 1 && step <= all && (self.last == 0 || all == self.all);
        if !is_next {
            return None;
        }
        (self.last, self.all) = (step, all);
        let of_dockerfile = all.saturating_sub(LABELS.len()).max(1);
        u8::try_from(BUILT * (step - 1).min(of_dockerfile) / of_dockerfile).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_goes_up_with_each_step() {
        let mut steps = Steps::default();
        let said = [
            "fetching",
            "Step 1/13 : FROM a",
            " ---> x",
            "Step 2/13 : RUN b",
            "Step 1/9 : printed by a step",
            "Step 4/13 : printed by a step",
            "Step 3/0 : odd",
            "Step x",
            "Step 3/13 : RUN c",
            "Step 4/13 : RUN d",
            "Step 5/13 : LABEL e",
            "Step 6/13 : LABEL f",
        ];
        let reached = said.iter().filter_map(|line| steps.reached(line));
        assert_eq!(reached.collect::<Vec<_>>(), [0, 22, 45, 67, 90, 90]);
    }
}
