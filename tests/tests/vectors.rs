//! Every family of upstream's answers, from the packed copy.

use husk_tests::vectors::{Exclusions, FAMILIES, Source, run};

#[test]
fn every_family_is_answered_as_upstream_does() {
    let exclusions = Exclusions::load().unwrap();
    let mut differences = String::new();
    for (family, answer) in FAMILIES {
        let report = run(family, *answer, &Source::Packed, &exclusions).unwrap();
        assert!(report.passed > 0, "family {family} has no case that passes");
        for difference in report.failed.iter().take(3) {
            differences += &format!("{family}, one of {}: {difference}\n", report.failed.len());
        }
    }
    assert!(differences.is_empty(), "{differences}");
}
