//! Places the labels of marks so that none covers another: the important ones first.

/// Average width of a character at the size of a label.
const CHARACTER: f64 = 5.6;

/// Classes of labels that are set in bold.
const BOLD: [&str; 2] = ["bad-label", "well-label"];

/// A label that wants a place.
#[derive(Clone, Debug)]
pub(super) struct Label {
    /// What it points to.
    pub(super) x: f64,
    /// Its text.
    pub(super) text: String,
    /// Class of its text.
    pub(super) class: &'static str,
    /// The lower the more important.
    pub(super) rank: u8,
}

/// Width of a text in a label.
pub(super) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// Does a text fit into a bar of that width?
pub(super) fn fits(text: &str, bar: f64) -> bool {
    width(text) + 12.0 <= bar
}

/// The labels that find room, each with the x of its left end; none covers another or one of the `marks`.
pub(super) fn place(mut labels: Vec<Label>, marks: &[f64], left: f64, right: f64) -> Vec<(f64, Label)> {
    labels.sort_by(|a, b| a.rank.cmp(&b.rank).then(a.x.total_cmp(&b.x)));
    let mut placed: Vec<(f64, f64, Label)> = Vec::new();
    for label in labels {
        let width = width(&label.text) * if BOLD.contains(&label.class) { 1.15 } else { 1.0 };
        // Beside its mark, or else before it.
        let choices = [label.x + 6.0, label.x - 6.0 - width];
        let free = |from: f64| {
            let to = from + width;
            let inside = from >= left && to <= right;
            inside
                && placed.iter().all(|(f, t, _)| from > t + 6.0 || to < f - 6.0)
                && marks.iter().all(|mark| *mark < from - 3.0 || *mark > to + 3.0)
        };
        if let Some(from) = choices.into_iter().find(|from| free(*from)) {
            placed.push((from, from + width, label));
        }
    }
    placed.into_iter().map(|(from, _, label)| (from, label)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_important_label_wins_and_none_covers_another() {
        let label = |x, text: &str, rank| Label { x, text: text.into(), class: "event-label", rank };
        let placed = place(
            vec![label(300.0, "Started", 3), label(302.0, "Unhealthy", 0), label(500.0, "Killing", 1)],
            &[300.0, 302.0, 500.0],
            100.0,
            900.0,
        );
        let texts: Vec<_> = placed.iter().map(|(_, l)| l.text.as_str()).collect();
        assert_eq!(texts, ["Unhealthy", "Killing", "Started"]);
        for (n, (from, label)) in placed.iter().enumerate() {
            for (other, _) in &placed[n + 1..] {
                assert!((from - other).abs() > width(&label.text).min(30.0), "{placed:?}");
            }
        }
    }
}
