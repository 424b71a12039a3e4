//! Lists, pipelines and compound commands.

use std::io::Read;
use std::rc::Rc;

use brush_parser::ast::{
    AndOr, AndOrList, CaseClauseCommand, Command, CompoundCommand, CompoundList, CompoundListItem, ForClauseCommand,
    IfClauseCommand, Pipeline, SeparatorOperator, WhileOrUntilClauseCommand,
};

use super::{Flow, Outcome, Shell, live, pattern};
use crate::stream::Stream;

impl Shell {
    pub(super) fn run_list(&mut self, list: &CompoundList) -> Outcome {
        let mut status = 0;
        for CompoundListItem(commands, separator) in &list.0 {
            self.deliver_signals()?;
            status = match separator {
                SeparatorOperator::Sequence => self.run_and_or(commands)?,
                SeparatorOperator::Async => self.run_in_background(commands)?,
            };
            self.status = status;
            self.deliver_signals()?;
        }
        Ok(status)
    }

    fn run_and_or(&mut self, list: &AndOrList) -> Outcome {
        let mut status = self.run_pipeline(&list.first, list.additional.is_empty())?;
        for (index, next) in list.additional.iter().enumerate() {
            let (pipeline, is_due) = match next {
                AndOr::And(pipeline) => (pipeline, status == 0),
                AndOr::Or(pipeline) => (pipeline, status != 0),
            };
            if is_due {
                status = self.run_pipeline(pipeline, index + 1 == list.additional.len())?;
            }
        }
        Ok(status)
    }

    /// A pipeline. Only the last one of a list, and only without `!`, can end the shell under `set -e`.
    fn run_pipeline(&mut self, pipeline: &Pipeline, is_last: bool) -> Outcome {
        let counts = is_last && !pipeline.bang;
        let outcome =
            if counts { self.run_stages(pipeline) } else { self.in_condition(|shell| shell.run_stages(pipeline)) };
        let mut status = outcome?;
        if pipeline.bang {
            status = i32::from(status == 0);
        }
        self.status = status;
        if counts && status != 0 && self.options.errexit && self.conditions == 0 {
            // A signal that came meanwhile has the first word.
            self.deliver_signals()?;
            return Err(Flow::Exit(status));
        }
        Ok(status)
    }

    fn run_stages(&mut self, pipeline: &Pipeline) -> Outcome {
        if let [only] = &pipeline.seq[..] {
            return self.run_command(only);
        }
        if live::is_live(&pipeline.seq) {
            return self.run_live(&pipeline.seq);
        }
        let mut input = self.fds.stream(0);
        let mut status = 0;
        let mut last_failure = 0;
        for (index, command) in pipeline.seq.iter().enumerate() {
            let is_last = index + 1 == pipeline.seq.len();
            let sink = Rc::default();
            let output = if is_last { self.fds.stream(1) } else { Stream::Sink(Rc::clone(&sink)) };
            status = self.in_subshell(|subshell| {
                subshell.fds.open(0, input.clone());
                subshell.fds.open(1, output);
                subshell.run_command(command)
            })?;
            if status != 0 {
                last_failure = status;
            }
            input = Stream::source(sink.take());
        }
        Ok(if self.options.pipefail { last_failure } else { status })
    }

    pub(super) fn run_command(&mut self, command: &Command) -> Outcome {
        match command {
            Command::Simple(command) => self.run_simple(command),
            Command::Compound(command, None) => self.run_compound(command),
            Command::Compound(command, Some(redirects)) => {
                self.with_redirects(&redirects.0, |shell| shell.run_compound(command))
            }
            Command::Function(definition) => {
                self.functions.insert(definition.fname.value.clone(), Rc::new(definition.body.clone()));
                Ok(0)
            }
            Command::ExtendedTest(..) => Err(self.fatal("[[ is bash's, not POSIX': use [ ]")),
        }
    }

    pub(super) fn run_compound(&mut self, command: &CompoundCommand) -> Outcome {
        match command {
            CompoundCommand::BraceGroup(group) => self.run_list(&group.list),
            CompoundCommand::Subshell(subshell) => self.in_subshell(|shell| shell.run_list(&subshell.list)),
            CompoundCommand::IfClause(command) => self.run_if(command),
            CompoundCommand::WhileClause(command) => self.run_while(command, true),
            CompoundCommand::UntilClause(command) => self.run_while(command, false),
            CompoundCommand::ForClause(command) => self.run_for(command),
            CompoundCommand::CaseClause(command) => self.run_case(command),
            CompoundCommand::Arithmetic(_) | CompoundCommand::ArithmeticForClause(_) => {
                Err(self.fatal("(( )) is bash's, not POSIX': use $(( ))"))
            }
            CompoundCommand::Coprocess(_) => Err(self.fatal("coproc is bash's, not POSIX'")),
        }
    }

    fn run_if(&mut self, command: &IfClauseCommand) -> Outcome {
        if self.holds(&command.condition)? {
            return self.run_list(&command.then);
        }
        for branch in command.elses.iter().flatten() {
            let is_due = match &branch.condition {
                Some(condition) => self.holds(condition)?,
                None => true,
            };
            if is_due {
                return self.run_list(&branch.body);
            }
        }
        Ok(0)
    }

    fn run_while(
        &mut self,
        WhileOrUntilClauseCommand(condition, body, _): &WhileOrUntilClauseCommand,
        goes_on_if: bool,
    ) -> Outcome {
        let mut status = 0;
        self.in_loop(|shell| {
            // The condition is part of the loop: it may `break`.
            let goes_on = shell.holds(condition)? == goes_on_if;
            if goes_on {
                status = shell.run_list(&body.list)?;
            }
            Ok(goes_on)
        })?;
        Ok(status)
    }

    fn run_for(&mut self, command: &ForClauseCommand) -> Outcome {
        let values = match &command.values {
            None => self.args.clone(),
            Some(words) => {
                let mut values = Vec::new();
                for word in words {
                    values.extend(self.expand_fields(&word.value)?);
                }
                values
            }
        };
        let mut values = values.into_iter();
        let mut status = 0;
        self.in_loop(|shell| {
            let Some(value) = values.next() else { return Ok(false) };
            shell.assign(&command.variable_name, value)?;
            status = shell.run_list(&command.body.list)?;
            Ok(true)
        })?;
        Ok(status)
    }

    fn run_case(&mut self, command: &CaseClauseCommand) -> Outcome {
        let value: Vec<char> = self.expand_text(&command.value.value)?.chars().collect();
        for case in &command.cases {
            for word in &case.patterns {
                let pattern: Vec<char> = self.expand_pattern(&word.value)?.chars().collect();
                if pattern::matches(&pattern, &value) {
                    return case.cmd.as_ref().map_or(Ok(0), |list| self.run_list(list));
                }
            }
        }
        Ok(0)
    }

    fn holds(&mut self, condition: &CompoundList) -> Result<bool, Flow> {
        Ok(self.in_condition(|shell| shell.run_list(condition))? == 0)
    }

    fn in_condition(&mut self, body: impl FnOnce(&mut Shell) -> Outcome) -> Outcome {
        self.conditions += 1;
        let outcome = body(self);
        self.conditions -= 1;
        outcome
    }

    /// Calls `round` until it answers false, or `break` or something stronger ends the loop.
    fn in_loop(&mut self, mut round: impl FnMut(&mut Shell) -> Result<bool, Flow>) -> Result<(), Flow> {
        self.loops += 1;
        let ended = loop {
            match round(self) {
                Ok(true) | Err(Flow::Continue(1)) => {}
                Ok(false) | Err(Flow::Break(1)) => break Ok(()),
                Err(Flow::Break(loops)) => break Err(Flow::Break(loops - 1)),
                Err(Flow::Continue(loops)) => break Err(Flow::Continue(loops - 1)),
                Err(stronger) => break Err(stronger),
            }
            if let Err(flow) = self.deliver_signals() {
                break Err(flow);
            }
        };
        self.loops -= 1;
        ended
    }

    /// All that is left to read from a descriptor, as text.
    pub(super) fn read_all(&mut self, number: i32) -> std::io::Result<String> {
        let mut bytes = Vec::new();
        self.fds.stream(number).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
