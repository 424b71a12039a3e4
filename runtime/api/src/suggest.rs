//! "Did you mean …?"

/// The candidate nearest to a misspelt word, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Words of any length come in, but no name is longer than this.
    if word.len() > 80 {
        return None;
    }
    let allowed = (word.len() / 3).clamp(1, 4);
    let lower = word.to_lowercase();
    candidates
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, remove, replace, swap of neighbours) from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = core::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_fields_find_what_was_meant() {
        let fields = ["livenessProbe", "readinessProbe", "image", "name", "env", "args"];
        let table = [
            ("livenesProbe", Some("livenessProbe")),
            ("livenessprobe", Some("livenessProbe")),
            ("iamge", Some("image")),
            ("arg", Some("args")),
            ("naem", Some("name")),
            ("somethingElse", None),
        ];
        for (word, meant) in table {
            assert_eq!(nearest(word, fields.into_iter()), meant, "{word}");
        }
    }
}
