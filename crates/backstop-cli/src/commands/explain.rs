//! `backstop explain POLICY REQUEST`.

mod human;
mod json;
mod sentence;

use backstop_gateway::{CannotExplain, NotUnderstood, Question, explain as play};

use crate::args::{Caller, Explain};
use crate::exit::Exit;
use crate::printer::Printer;

/// Says what a request would get, and why. Nothing is bound, opened, asked or written.
pub(crate) fn explain(arguments: &Explain, printer: Printer) -> Exit {
    let loaded = match backstop_policy::load(&arguments.policy) {
        Ok(loaded) => loaded,
        Err(refused) => {
            let hint = format!("`backstop check {}` shows it in colour", arguments.policy.display());
            printer.error(&refused, Some(&hint));
            return Exit::Error;
        }
    };
    let explained = question(arguments).map_err(CannotExplain::from).and_then(|question| {
        let explanation = play(&loaded, &question)?;
        Ok((question, explanation))
    });
    match explained {
        Ok((question, explanation)) if arguments.json => {
            printer.line(format_args!("{:#}", json::document(&question, &explanation)));
            Exit::Success
        }
        Ok((question, explanation)) => {
            printer.raw(&human::text(&question, &explanation, printer.colour()));
            Exit::Success
        }
        Err(error) => {
            let hint = match &error {
                CannotExplain::Question(not_understood) => not_understood.hint().map(str::to_owned),
                _ => None,
            };
            printer.error(&error, hint.as_ref().map(|hint| hint as &dyn std::fmt::Display));
            Exit::Error
        }
    }
}

fn question(arguments: &Explain) -> Result<Question, NotUnderstood> {
    let mut question = Question::about(&arguments.request)?;
    question.host.clone_from(&arguments.host);
    question.content = arguments.data.clone().map(String::into_bytes);
    question.is_trusted = arguments.caller == Caller::Trusted;
    arguments.headers.iter().try_for_each(|text| question.field(text))?;
    arguments.when.iter().try_for_each(|text| question.when(text))?;
    arguments.copy_age.iter().try_for_each(|text| question.copy_age(text))?;
    arguments.in_flight.iter().try_for_each(|text| question.in_flight(text))?;
    arguments.cache.iter().try_for_each(|text| question.cache(text))?;
    arguments.breakers.iter().try_for_each(|text| question.breaker(text))?;
    arguments.authorizer.iter().try_for_each(|text| question.authorizer(text))?;
    arguments.operation.iter().try_for_each(|text| question.operation(text))?;
    Ok(question)
}
