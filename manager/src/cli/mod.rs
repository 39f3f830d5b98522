//! The command line: what can be asked for ([`arguments`]), and the doing of it. The only room that sees all
//! others; none may import it.

mod arguments;
mod print;
mod serve;
mod sign;
mod token;

pub(crate) use arguments::Arguments;

use crate::operator;
use crate::process::failure::Failure;
use arguments::Task;
use tokio::runtime::Runtime;

/// Runs the task to its end.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let task = match arguments.task {
        Task::Operator(task) => return Ok(operator::run(task)?),
        task => task,
    };
    let runtime =
        Runtime::new().map_err(|error| Failure::System(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        match task {
            Task::Serve(task) => serve::serve(task).await,
            Task::AgentGateway(task) => serve::agent_gateway(task).await,
            Task::Token(task) => token::token(task).await,
            Task::Sign(task) => sign::sign(task).await,
            Task::Operator(task) => Ok(operator::run(task)?),
        }
    })
}
