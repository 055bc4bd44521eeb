//! What Apple finds wrong with an uploaded file, and what somebody can do about it. Pure.
//!
//! Source: the codes that Apple's upload programs print, as public build services map them.

use crate::app_store_connect::documents::Detail;

/// The most problems that are quoted.
const MOST_PROBLEMS: usize = 8;
/// The longest quotation of a problem, in characters.
const LONGEST_PROBLEM: usize = 400;

/// What is wrong with the file, with what to do.
pub(super) fn text(problems: &[Detail]) -> String {
    let mut advice: Vec<&str> = Vec::new();
    for one in problems.iter().filter_map(|problem| advice_for(&problem.code)) {
        if !advice.contains(&one) {
            advice.push(one);
        }
    }
    let said: Vec<_> = problems.iter().take(MOST_PROBLEMS).map(said).collect();
    let said = match said.is_empty() {
        true => "no reason is given; App Store Connect sent one by e-mail".to_owned(),
        false => said.join(" · "),
    };
    let lead = advice.join(" ");
    let gap = if lead.is_empty() { "" } else { " " };
    format!("{lead}{gap}Apple cannot use the file: {said}")
}

fn said(problem: &Detail) -> String {
    let plain = problem.description.chars().filter(|c| !c.is_control());
    let text: String = plain.take(LONGEST_PROBLEM).collect();
    let text = text.trim_end_matches('.');
    if problem.code.is_empty() { text.to_owned() } else { format!("{text} ({})", problem.code) }
}

fn advice_for(code: &str) -> Option<&'static str> {
    // Some messages carry the code in a longer word, such as `ITMS-90683`.
    let number = code.rsplit('-').next().unwrap_or(code);
    Some(match number {
        "90062" | "90186" | "90478" => {
            "The version must be higher than the last one that was approved, and its builds are \
             closed then: raise CFBundleShortVersionString and build again."
        }
        "90054" | "90055" => {
            "The bundle identifier of the file is not that of the app in App Store Connect: correct \
             it and build again."
        }
        "90189" => "Raise the build number and build again.",
        "90382" => "Apple takes no more uploads of this app today: publish again tomorrow.",
        "90683" => {
            "The app uses something of the device without saying why: add the purpose string that \
             Apple names to Info.plist and build again."
        }
        "90725" => "Build again with the version of Xcode that Apple demands.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_code_says_what_to_do_before_the_words_of_apple() {
        let problem = |code: &str, description: &str| Detail {
            code: code.into(),
            description: description.into(),
        };
        let told = text(&[
            problem("90062", "This bundle is invalid."),
            problem("90186", "Invalid Pre-Release Train."),
            problem("1", "Odd."),
        ]);
        assert!(told.starts_with("The version must be higher"), "{told}");
        let said = "This bundle is invalid (90062) · Invalid Pre-Release Train (90186) · Odd (1)";
        assert!(told.ends_with(said), "{told}");
        assert_eq!(told.matches("must be higher").count(), 1);
        assert!(text(&[problem("ITMS-90683", "x")]).contains("purpose string"));
        assert!(text(&[]).contains("no reason"));
    }
}
