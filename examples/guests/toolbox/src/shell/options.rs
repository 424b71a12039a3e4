//! What `set -e` and its kin switch.

/// The shell's options.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    /// `-e`: a command that fails ends the shell.
    pub(super) errexit: bool,
    /// `-u`: a parameter that isn't set is an error.
    pub(super) nounset: bool,
    /// `-x`: commands are shown.
    pub(super) xtrace: bool,
    /// `-f`: no file names for patterns.
    pub(super) noglob: bool,
    /// `-o pipefail`: a pipeline fails when a stage does.
    pub(super) pipefail: bool,
}

impl Options {
    /// Switches an option by its letter. False: no such option.
    pub(super) fn switch(&mut self, letter: char, is_on: bool) -> bool {
        let option = match letter {
            'e' => &mut self.errexit,
            'u' => &mut self.nounset,
            'x' => &mut self.xtrace,
            'f' => &mut self.noglob,
            // They make no difference here.
            'b' | 'h' | 'i' | 'l' | 'm' | 's' | 'v' => return true,
            _ => return false,
        };
        *option = is_on;
        true
    }

    /// Switches an option by its long name. False: no such option.
    pub(super) fn switch_named(&mut self, name: &str, is_on: bool) -> bool {
        let letter = match name {
            "errexit" => 'e',
            "nounset" => 'u',
            "xtrace" => 'x',
            "noglob" => 'f',
            "pipefail" => {
                self.pipefail = is_on;
                return true;
            }
            "monitor" | "verbose" | "posix" => return true,
            _ => return false,
        };
        self.switch(letter, is_on)
    }

    /// `$-`.
    pub(super) fn letters(&self) -> String {
        let switches = [(self.errexit, 'e'), (self.noglob, 'f'), (self.nounset, 'u'), (self.xtrace, 'x')];
        switches.into_iter().filter(|(is_on, _)| *is_on).map(|(_, letter)| letter).collect()
    }

    /// Reads options from the beginning of `args`, as `set` and `sh` take them: how many arguments they are.
    pub(super) fn read(&mut self, args: &[String]) -> Result<usize, String> {
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            let is_on = arg.starts_with('-');
            if arg == "--" || arg == "-" || arg.len() < 2 || !arg.starts_with(['-', '+']) {
                break;
            }
            at += 1;
            for letter in arg[1..].chars() {
                if letter == 'o' {
                    let name = args.get(at).ok_or("-o: needs the name of an option")?;
                    at += 1;
                    if !self.switch_named(name, is_on) {
                        return Err(format!("-o {name}: no such option"));
                    }
                } else if letter != 'c' && !self.switch(letter, is_on) {
                    return Err(format!("illegal option -{letter}"));
                }
            }
        }
        Ok(at)
    }
}
