//! The small languages: selectors, field selectors, budgets, `$(NAME)`, environment files. Any text is an error or means something, and
//! what is printed again means the same.

use std::collections::BTreeMap;

use husk_core::expansion::{Room, expand};
use husk_core::field_selector::FieldSelector;
use husk_core::pdb::Share;
use husk_core::selector::{Labels, Selector};

/// Any text.
pub fn words(text: &str) {
    selector(text);
    field_selector(text);
    expansion(text);
    let _ = Share::parse(text);
    if let Some((key, file)) = text.split_once('\n') {
        let _ = husk_api::env_file_value(file, key);
    }
}

fn selector(text: &str) {
    let Ok(selector) = Selector::parse(text) else { return };
    let printed = selector.to_string();
    let again = Selector::parse(&printed).unwrap_or_else(|error| panic!("{text:?} is printed as {printed:?}: {error}"));
    assert_eq!(again.to_string(), printed);
    for labels in [Labels::new(), BTreeMap::from([("a".into(), "1".into()), ("app".into(), "web".into())])] {
        assert_eq!(selector.matches(&labels), again.matches(&labels), "{text:?} and {printed:?}");
    }
}

fn field_selector(text: &str) {
    let Ok(selector) = FieldSelector::parse(text) else { return };
    let printed = selector.to_string();
    assert_eq!(FieldSelector::parse(&printed), Ok(selector.clone()), "{text:?} is printed as {printed:?}");
    let _ = selector.matches(|field| if field == "status.phase" { "Running" } else { "" });
    assert!(selector.fields().count() <= text.len());
}

fn expansion(text: &str) {
    let nothing = |_: &str| None;
    let dollars = text.replace('$', "$$");
    assert_eq!(expand(&dollars, nothing, &mut Room::default()).as_deref(), Ok(text), "escaped");
    for known in [None, Some("$(A)")] {
        let lookup = |name: &str| known.filter(|_| name == "A");
        let expanded = expand(text, lookup, &mut Room::default()).map(|expanded| expanded.len());
        assert!(expanded.is_ok_and(|length| length <= text.len()));
    }
}
