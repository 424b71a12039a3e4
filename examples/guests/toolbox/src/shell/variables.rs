//! Shell variables, and the locals of functions.

use std::collections::BTreeMap;

/// One variable. It may exist without a value: `export X`.
#[derive(Clone, Debug, Default)]
struct Variable {
    value: Option<String>,
    is_exported: bool,
    is_readonly: bool,
}

/// All variables of a shell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    all: BTreeMap<String, Variable>,
    /// What each running function's `local` hides.
    hidden: Vec<Vec<(String, Option<Variable>)>>,
}

impl Variables {
    pub(crate) fn from_environment() -> Variables {
        let mut all = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            let value = Some(value.to_string_lossy().into_owned());
            all.insert(name.to_string_lossy().into_owned(), Variable { value, is_exported: true, is_readonly: false });
        }
        let mut vars = Variables { all, hidden: Vec::new() };
        for (name, value) in [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/root"), ("OPTIND", "1")] {
            if vars.value(name).is_none() {
                // No name here is read-only.
                let _ = vars.set(name, value.to_owned());
            }
        }
        vars
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.all.get(name)?.value.as_deref()
    }

    pub(crate) fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let variable = self.all.entry(name.to_owned()).or_default();
        if variable.is_readonly {
            return Err(format!("{name}: is read only"));
        }
        variable.value = Some(value);
        Ok(())
    }

    pub(crate) fn unset(&mut self, name: &str) -> Result<(), String> {
        if self.all.get(name).is_some_and(|variable| variable.is_readonly) {
            return Err(format!("{name}: is read only"));
        }
        self.all.remove(name);
        Ok(())
    }

    pub(crate) fn export(&mut self, name: &str) {
        self.all.entry(name.to_owned()).or_default().is_exported = true;
    }

    pub(crate) fn make_readonly(&mut self, name: &str) {
        self.all.entry(name.to_owned()).or_default().is_readonly = true;
    }

    /// What another program would see, sorted by name.
    pub(crate) fn exported(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all
            .iter()
            .filter(|(_, variable)| variable.is_exported)
            .filter_map(|(name, variable)| Some((name.as_str(), variable.value.as_deref()?)))
    }

    /// All that have a value, sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all.iter().filter_map(|(name, variable)| Some((name.as_str(), variable.value.as_deref()?)))
    }

    /// Forgets what another program wouldn't see.
    pub(crate) fn retain_exported(&mut self) {
        self.all.retain(|_, variable| variable.is_exported);
        self.hidden.clear();
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    /// Keeps a variable as it is, to be put back by [`Variables::restore`].
    pub(crate) fn save(&self, name: &str) -> Saved {
        Saved(name.to_owned(), self.all.get(name).cloned())
    }

    pub(crate) fn restore(&mut self, Saved(name, variable): Saved) {
        match variable {
            Some(variable) => self.all.insert(name, variable),
            None => self.all.remove(&name),
        };
    }

    pub(crate) fn enter_function(&mut self) {
        self.hidden.push(Vec::new());
    }

    pub(crate) fn leave_function(&mut self) {
        for (name, variable) in self.hidden.pop().unwrap_or_default().into_iter().rev() {
            self.restore(Saved(name, variable));
        }
    }

    /// Makes a name the running function's own. False outside of functions.
    pub(crate) fn make_local(&mut self, name: &str) -> bool {
        let Some(frame) = self.hidden.last_mut() else { return false };
        frame.push((name.to_owned(), self.all.get(name).cloned()));
        true
    }
}

/// A variable as it was.
pub(crate) struct Saved(String, Option<Variable>);

/// Whether a text can name a variable.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
}
