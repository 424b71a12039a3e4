//! An applet's arguments: `-abc`, `-n 5`, `-n5`, `--`, and long options.

/// What was asked for, taken apart.
pub(crate) struct Parsed<'a> {
    flags: Vec<(String, Option<&'a str>)>,
    /// The arguments that are no options.
    pub(crate) operands: Vec<&'a str>,
}

impl<'a> Parsed<'a> {
    /// Whether the flag was given, by its letter or long name.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(name, _)| name == flag)
    }

    /// The value of the last use of an option.
    pub(crate) fn value(&self, option: &str) -> Option<&'a str> {
        self.flags.iter().rev().find(|(name, _)| name == option).and_then(|(_, value)| *value)
    }

    /// The values of all uses of an option.
    pub(crate) fn values(&self, option: &str) -> impl Iterator<Item = &'a str> {
        self.flags.iter().filter(move |(name, _)| name == option).filter_map(|(_, value)| *value)
    }
}

/// Takes `args` (without the applet's name) apart. `options` says which there are: letters for flags, a letter and a
/// colon for an option with a value (`"qO:"`); `long` names each long option's letter, and `--name=value` works as well.
pub(crate) fn parse<'a>(args: &'a [String], options: &str, long: &[(&str, char)]) -> Result<Parsed<'a>, String> {
    let takes_value = |letter: char| options.contains(&format!("{letter}:"));
    let mut parsed = Parsed { flags: Vec::new(), operands: Vec::new() };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            parsed.operands.extend(rest.by_ref().map(String::as_str));
        } else if let Some(name) = arg.strip_prefix("--") {
            let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
            let letter = long.iter().find(|(known, _)| *known == name).map(|(_, letter)| *letter);
            let letter = letter.ok_or_else(|| format!("unrecognized option: {arg}"))?;
            let value = if takes_value(letter) && value.is_none() { rest.next().map(String::as_str) } else { value };
            parsed.flags.push((letter.to_string(), value));
        } else if arg.len() > 1 && arg.starts_with('-') {
            for (at, letter) in arg[1..].char_indices() {
                if letter == ':' || !options.contains(letter) {
                    return Err(format!("unrecognized option: -{letter}"));
                }
                if !takes_value(letter) {
                    parsed.flags.push((letter.to_string(), None));
                    continue;
                }
                let attached = &arg[1 + at + letter.len_utf8()..];
                let value = if attached.is_empty() { rest.next().map(String::as_str) } else { Some(attached) };
                let value = value.ok_or_else(|| format!("option requires an argument: -{letter}"))?;
                parsed.flags.push((letter.to_string(), Some(value)));
                break;
            }
        } else {
            parsed.operands.push(arg);
        }
    }
    Ok(parsed)
}
