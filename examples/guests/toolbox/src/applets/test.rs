//! `test` and `[`.

use std::cmp::Ordering;
use std::fs::Metadata;
use std::io::IsTerminal;

use super::{Context, Failure, Status};

/// `test EXPRESSION`, `[ EXPRESSION ]`.
pub(super) fn run(context: &mut Context<'_>) -> Status {
    let mut args: Vec<&str> = context.operands().iter().map(String::as_str).collect();
    if context.args[0].ends_with('[') && args.pop() != Some("]") {
        return Err(Failure::Message(2, "missing ]".to_owned()));
    }
    let mut test = Test { args: &args, at: 0, context };
    let holds = match args.len() {
        0 => false,
        _ => test.or().map_err(|message| Failure::Message(2, message))?,
    };
    if test.at < args.len() {
        return Err(Failure::Message(2, format!("{}: unexpected operand", args[test.at])));
    }
    Ok(i32::from(!holds))
}

struct Test<'a, 'c, 'x> {
    args: &'a [&'a str],
    at: usize,
    context: &'c Context<'x>,
}

impl<'a> Test<'a, '_, '_> {
    fn or(&mut self) -> Result<bool, String> {
        let mut holds = self.and()?;
        while self.take("-o") {
            holds |= self.and()?;
        }
        Ok(holds)
    }

    fn and(&mut self) -> Result<bool, String> {
        let mut holds = self.not()?;
        while self.take("-a") {
            holds &= self.not()?;
        }
        Ok(holds)
    }

    fn not(&mut self) -> Result<bool, String> {
        // `[ ! ]` asks whether the text is empty, and `[ ! = x ]` compares.
        let left = self.args.len() - self.at;
        if left > 1 && self.args[self.at] == "!" && !(left == 3 && is_binary(self.args[self.at + 1])) {
            self.at += 1;
            return Ok(!self.not()?);
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<bool, String> {
        let rest = &self.args[self.at..];
        match rest {
            [] => Err("argument expected".to_owned()),
            [left, operator, right, ..] if is_binary(operator) => {
                self.at += 3;
                self.compare(left, operator, right)
            }
            ["(", _, ..] => {
                self.at += 1;
                let holds = self.or()?;
                if self.take(")") { Ok(holds) } else { Err("closing parenthesis expected".to_owned()) }
            }
            [operator, operand, ..] if is_unary(operator) => {
                self.at += 2;
                self.check(operator, operand)
            }
            [text, ..] => {
                self.at += 1;
                Ok(!text.is_empty())
            }
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.args.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    fn check(&self, operator: &str, operand: &str) -> Result<bool, String> {
        let path = self.context.shell.path(operand);
        let is = |check: fn(&Metadata) -> bool| path.metadata().is_ok_and(|meta| check(&meta));
        Ok(match operator {
            "-n" => !operand.is_empty(),
            "-z" => operand.is_empty(),
            // WASI has no modes: what is there can be read, written and run as far as the volume allows.
            "-e" | "-r" | "-w" | "-x" => path.exists() || operand.starts_with("/dev/std") || operand == "/dev/null",
            "-f" => is(Metadata::is_file),
            "-d" => is(Metadata::is_dir),
            "-s" => is(|meta| meta.len() > 0),
            "-h" | "-L" => path.symlink_metadata().is_ok_and(|meta| meta.is_symlink()),
            "-c" => operand == "/dev/null",
            // Nothing that Husk's containers have.
            "-b" | "-p" | "-S" | "-u" | "-g" | "-k" => false,
            "-t" => match operand {
                "0" => std::io::stdin().is_terminal(),
                "1" => std::io::stdout().is_terminal(),
                "2" => std::io::stderr().is_terminal(),
                _ => false,
            },
            other => return Err(format!("{other}: unknown operator")),
        })
    }

    fn compare(&self, left: &str, operator: &str, right: &str) -> Result<bool, String> {
        let number = |text: &str| text.trim().parse::<i64>().map_err(|_| format!("{text}: bad number"));
        let numbers = || Ok::<Ordering, String>(number(left)?.cmp(&number(right)?));
        let age = |name: &str| self.context.shell.path(name).metadata().and_then(|meta| meta.modified()).ok();
        Ok(match operator {
            "=" | "==" => left == right,
            "!=" => left != right,
            "<" => left < right,
            ">" => left > right,
            "-eq" => numbers()?.is_eq(),
            "-ne" => numbers()?.is_ne(),
            "-lt" => numbers()?.is_lt(),
            "-le" => numbers()?.is_le(),
            "-gt" => numbers()?.is_gt(),
            "-ge" => numbers()?.is_ge(),
            "-nt" => age(left) > age(right),
            "-ot" => age(left) < age(right),
            "-ef" => self.context.shell.path(left) == self.context.shell.path(right),
            other => return Err(format!("{other}: unknown operator")),
        })
    }
}

fn is_binary(word: &str) -> bool {
    matches!(
        word,
        "=" | "==" | "!=" | "<" | ">" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-nt" | "-ot" | "-ef"
    )
}

fn is_unary(word: &str) -> bool {
    word.len() == 2 && word.starts_with('-') && "nzerwxfdshLcbpSugkt".contains(&word[1..])
}
