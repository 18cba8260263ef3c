//! Messages about an unknown key or name: the nearest known one, and all that are accepted.

/// The message for an unknown key of the table called `holder`: `unknown key; accepted by codel: aqm, target`.
pub fn unknown_key<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
    holder: &str,
) -> String {
    let suggestion = suggestion(given, known, &format!(" by {holder}"));
    format!("unknown key; {suggestion}")
}

/// `did you mean "target"? accepted by codel: aqm, target`. The question appears only if a known name is near.
pub(crate) fn suggestion<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
    by: &str,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let accepted = format!("accepted{by}: {}", known.join(", "));
    match nearest(given, &known) {
        Some(name) => format!("did you mean \"{name}\"? {accepted}"),
        None => accepted,
    }
}

/// The known name nearest to `given`, if at most a third of it would have to change.
fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    /// Longer than any name of the format; bounds the cost of the distance for any input.
    const LONGEST: usize = 64;
    if given.len() > LONGEST {
        return None;
    }
    let given = given.to_lowercase().replace('-', "_");
    let within = (given.chars().count() / 3).max(1);
    known
        .iter()
        .map(|name| (strsim::osa_distance(&given, name), *name))
        .filter(|(distance, _)| *distance <= within)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_is_recognised_and_a_different_word_is_not() {
        let known = ["pfifo", "codel", "fq_codel"];
        assert_eq!(nearest("fq-codel", &known), Some("fq_codel"));
        assert_eq!(nearest("CoDel", &known), Some("codel"));
        assert_eq!(nearest("cdoel", &known), Some("codel"));
        assert_eq!(nearest("red", &known), None);
    }

    #[test]
    fn the_message_for_an_unknown_key_lists_the_known_ones() {
        assert_eq!(
            unknown_key("tarjet", ["limit", "target"], "codel"),
            "unknown key; did you mean \"target\"? accepted by codel: limit, target"
        );
    }

    #[test]
    fn a_suggestion_always_lists_the_accepted_names() {
        assert_eq!(
            suggestion("rat", ["rate", "delay"], " by [link]"),
            "did you mean \"rate\"? accepted by [link]: rate, delay"
        );
        assert_eq!(suggestion("colour", ["rate"], ""), "accepted: rate");
    }
}
