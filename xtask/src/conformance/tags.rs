//! Finds the tests that claim a row: those with `// spec: ID` above them, and those named `edge_NN_…`.
//!
//! Sources are formatted by rustfmt (`cargo xtask test` sees to that), so lines are enough to go by. Where they are not, a
//! test gets a name under which nothing ran: that is an error, never a claim.

/// A test that claims rows.
#[derive(Debug, PartialEq)]
pub(crate) struct Claim {
    pub(crate) rows: Vec<String>,
    /// Modules inside the file and the function, as in `tests::name`.
    pub(crate) test: String,
    pub(crate) line: usize,
}

/// A claim that is none, and why.
#[derive(Debug, PartialEq)]
pub(crate) struct Stray {
    pub(crate) line: usize,
    pub(crate) why: String,
}

/// The claims of one file.
pub(crate) fn scan(text: &str) -> (Vec<Claim>, Vec<Stray>) {
    let mut scanner = Scanner::default();
    for (index, line) in text.lines().enumerate() {
        scanner.line(index + 1, line);
    }
    scanner.give_up("the file ends below it");
    (scanner.claims, scanner.strays)
}

#[derive(Default)]
struct Scanner {
    claims: Vec<Claim>,
    strays: Vec<Stray>,
    /// Inline modules that are open: indentation and name.
    modules: Vec<(usize, String)>,
    above: Above,
}

/// What stands above a function.
#[derive(Default)]
struct Above {
    /// Line of the first tag.
    tag: Option<usize>,
    rows: Vec<String>,
    unreadable: Option<String>,
    is_test: bool,
    ignored: bool,
    /// Brackets of an attribute that goes over several lines.
    open: usize,
}

impl Scanner {
    fn line(&mut self, number: usize, line: &str) {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if self.above.open > 0 || code.starts_with("#[") {
            return self.above.attribute(code);
        }
        if let Some(tag) = code.strip_prefix("// spec:") {
            return self.above.tag(number, tag);
        }
        if code.starts_with("//") {
            return;
        }
        if let Some(name) = function(code) {
            return self.function(number, name);
        }
        self.give_up("no test follows it");
        if let Some(name) = inline_module(code) {
            self.modules.push((indent, name.to_owned()));
        } else if code == "}" {
            self.modules.retain(|(open, _)| *open < indent);
        }
    }

    fn function(&mut self, number: usize, name: &str) {
        let mut above = std::mem::take(&mut self.above);
        above.rows.extend(edge_case(name).filter(|_| above.is_test));
        let why = match above.tag {
            _ if above.ignored && !above.rows.is_empty() => "the test is ignored".to_owned(),
            Some(_) if above.unreadable.is_some() => {
                format!("{:?} is no row; write `// spec: ID, ID`", above.unreadable.unwrap_or_default())
            }
            Some(_) if !above.is_test => format!("{name} is not a test, or its attribute stands above the tag"),
            _ if above.rows.is_empty() => return,
            _ => {
                let modules = self.modules.iter().map(|(_, module)| &**module);
                let test = modules.chain([name]).collect::<Vec<_>>().join("::");
                return self.claims.push(Claim { rows: above.rows, test, line: number });
            }
        };
        self.strays.push(Stray { line: above.tag.unwrap_or(number), why });
    }

    /// Something else than a function follows.
    fn give_up(&mut self, why: &str) {
        let above = std::mem::take(&mut self.above);
        self.strays.extend(above.tag.map(|line| Stray { line, why: why.to_owned() }));
    }
}

impl Above {
    fn tag(&mut self, number: usize, tag: &str) {
        self.tag.get_or_insert(number);
        for word in tag.split([',', ' ']).filter(|word| !word.is_empty()) {
            if is_row(word) {
                self.rows.push(word.to_owned());
            } else {
                self.unreadable = Some(word.to_owned());
            }
        }
        if self.rows.is_empty() && self.unreadable.is_none() {
            self.unreadable = Some(String::new());
        }
    }

    /// No test of this repository is switched off; this is how one would be found out, since it can't earn a row.
    fn attribute(&mut self, code: &str) {
        self.is_test |= code.starts_with("#[test]") || code.starts_with("#[tokio::test");
        self.ignored |= code.starts_with("#[ignore") || (code.starts_with("#[cfg_attr") && code.contains("ignore"));
        let open = self.open + code.matches('[').count();
        self.open = open.saturating_sub(code.matches(']').count());
    }
}

/// `INIT-03` and the like.
fn is_row(word: &str) -> bool {
    word.split_once('-').is_some_and(|(area, number)| {
        !area.is_empty()
            && area.chars().all(|c| c.is_ascii_uppercase())
            && number.len() == 2
            && number.chars().all(|c| c.is_ascii_digit())
    })
}

/// `edge_07_startup_…` claims `EDGE-07`.
fn edge_case(name: &str) -> Option<String> {
    let (number, _) = name.strip_prefix("edge_")?.split_once('_')?;
    Some(format!("EDGE-{number}")).filter(|row| is_row(row))
}

/// Name of the function that begins on this line.
fn function(code: &str) -> Option<&str> {
    const BEFORE: [&str; 4] = ["pub ", "pub(crate) ", "async ", "const "];
    let code = BEFORE.iter().fold(code, |code, word| code.strip_prefix(word).unwrap_or(code));
    code.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Name of the module whose body begins on this line.
fn inline_module(code: &str) -> Option<&str> {
    let code = code.strip_prefix("pub ").or(code.strip_prefix("pub(crate) ")).unwrap_or(code);
    code.strip_prefix("mod ")?.strip_suffix('{').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(text: &str) -> Vec<(String, String)> {
        let (claims, strays) = scan(text);
        assert_eq!(strays, []);
        claims.into_iter().map(|claim| (claim.rows.join(" "), claim.test)).collect()
    }

    fn strays(text: &str) -> Vec<(usize, String)> {
        let (claims, strays) = scan(text);
        assert_eq!(claims, []);
        strays.into_iter().map(|stray| (stray.line, stray.why)).collect()
    }

    fn claim(rows: &str, test: &str) -> (String, String) {
        (rows.to_owned(), test.to_owned())
    }

    #[test]
    fn tags_are_found_above_tests_with_comments_and_attributes_between() {
        let text = "// spec: INIT-01, INIT-02\n#[test]\nfn a() {\n}\n\n\
                    // spec: POD-01\n/// Words.\n// spec: POD-02\n#[tokio::test(flavor = \"multi_thread\")]\n\
                    #[allow(\n    dead_code,\n)]\nasync fn b() {}\n";
        assert_eq!(claims(text), [claim("INIT-01 INIT-02", "a"), claim("POD-01 POD-02", "b")]);
    }

    #[test]
    fn a_test_is_named_with_the_modules_around_it() {
        let text = "mod tests {\n    mod inner {\n        // spec: POD-01\n        #[test]\n        fn a() {\n        }\n    }\n\n\
                    \x20   // spec: POD-02\n    #[test]\n    fn b() {}\n}\n\n// spec: POD-03\n#[test]\nfn c() {}\n";
        assert_eq!(
            claims(text),
            [claim("POD-01", "tests::inner::a"), claim("POD-02", "tests::b"), claim("POD-03", "c")]
        );
    }

    #[test]
    fn edge_cases_claim_by_their_name_and_only_as_tests() {
        assert_eq!(claims("#[test]\nfn edge_07_x() {}\nfn edge_08_helper() {}\n"), [claim("EDGE-07", "edge_07_x")]);
        assert_eq!(claims("// spec: POD-01\n#[test]\nfn edge_36_x() {}\n"), [claim("POD-01 EDGE-36", "edge_36_x")]);
    }

    #[test]
    fn an_ignored_test_claims_nothing() {
        let ignored = || vec![(1, "the test is ignored".to_owned())];
        assert_eq!(strays("// spec: POD-01\n#[test]\n#[ignore]\nfn a() {}\n"), ignored());
        assert_eq!(strays("// spec: POD-01\n#[ignore = \"slow\"]\n#[test]\nfn a() {}\n"), ignored());
        assert_eq!(strays("// spec: POD-01\n#[test]\n#[cfg_attr(not(slow), ignore)]\nfn a() {}\n"), ignored());
        assert_eq!(strays("#[test]\n#[ignore]\nfn edge_01_a() {}\n"), [(3, "the test is ignored".to_owned())]);
    }

    #[test]
    fn tags_above_anything_else_are_errors() {
        for text in ["// spec: POD-01\nfn a() {}\n", "#[test]\n\n// spec: POD-01\nfn a() {}\n"] {
            assert!(strays(text)[0].1.starts_with("a is not a test"), "{text}");
        }
        for text in ["// spec: POD-01\n", "// spec: POD-01\n\n#[test]\nfn a() {}\n", "// spec: POD-01\nmacro!();\n"] {
            assert_eq!(strays(text)[0].0, 1, "{text}");
        }
        for text in ["// spec: POD-1\n#[test]\nfn a() {}\n", "// spec:\n#[test]\nfn a() {}\n"] {
            assert!(strays(text)[0].1.contains("is no row"), "{text}");
        }
    }
}
