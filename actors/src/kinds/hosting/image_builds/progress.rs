//! The progress of a build, from the lines `[1/2] STEP 2/5: …` of the builder.

/// The share of the build in the progress, in percent. The push is the rest.
const BUILT: usize = 90;

/// What the steps before the last one that the builder announced make of the whole, in thousandths of a
/// percent. A program in the build can print such lines too, so only a line of a later step counts.
#[derive(Debug, Default)]
pub(super) struct Progress(usize);

impl Progress {
    /// The progress in percent, if the line announces a later step.
    pub fn reached(&mut self, line: &str) -> Option<u8> {
        // The stages of a Dockerfile with one stage are not numbered.
        let (stage, step) = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((stage, step)) => (part_of(stage)?, step),
            None => ((1, 1), line),
        };
        let (step, steps) = part_of(step.strip_prefix("STEP ")?.split_once(": ")?.0)?;
        let ((stage, stages), width) = (stage, BUILT * 1000);
        let done = (stage - 1) * width / stages + (step - 1) * width / stages / steps;
        if done < self.0 || done == self.0 && done > 0 {
            return None;
        }
        self.0 = done;
        u8::try_from(done / 1000).ok()
    }
}

/// `2/5`, if it is a part of a whole.
fn part_of(text: &str) -> Option<(usize, usize)> {
    let (part, whole) = text.split_once('/')?;
    let (part, whole) = (part.parse().ok()?, whole.parse().ok()?);
    (1 <= part && part <= whole && whole <= 1000).then_some((part, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(said: &[&str]) -> Vec<u8> {
        let mut progress = Progress::default();
        said.iter().filter_map(|line| progress.reached(line)).collect()
    }

    #[test]
    fn progress_goes_up_with_each_step() {
        let said = [
            "fetching",
            "STEP 1/4: FROM a",
            "--> x",
            "STEP 2/4: RUN b",
            "STEP 1/9: printed by a step",
            "STEP 3/0: odd",
            "STEP 9/4: odd",
            "STEP x",
            "STEP 3/4: RUN c",
            "STEP 4/4: RUN d",
        ];
        assert_eq!(reached(&said), [0, 22, 45, 67]);
    }

    #[test]
    fn each_stage_is_a_part() {
        let said = ["[1/2] STEP 1/2: FROM a", "[1/2] STEP 2/2: RUN b", "[2/2] STEP 1/3: FROM c"];
        assert_eq!(reached(&said), [0, 22, 45]);
    }
}
