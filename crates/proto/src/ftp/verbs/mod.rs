//! The commands, one file each.
//!
//! Invariants: before login, only the login commands and those that explain them are accepted. A command that
//! is not accepted changes nothing.

mod abor;
mod appe;
mod auth;
mod cwd;
mod dele;
mod eprt;
mod epsv;
mod feat;
mod hash;
mod help;
mod list;
mod mdtm;
mod mfmt;
mod mkd;
mod mlsd;
mod mlst;
mod mode;
mod nlst;
mod opts;
mod pass;
mod pasv;
mod port;
mod pwd;
mod quit;
mod rein;
mod rest;
mod retr;
mod rmd;
mod rnfr;
mod rnto;
mod site;
mod size;
mod stat;
mod stor;
mod stou;
mod stru;
mod syst;
mod r#type;
mod user;

use plimsoll_wire::ftp::command::Verb;

use super::answer::{Answer, Obeyed};
use super::conversation::Conversation;
use super::state::Who;

/// Executes a command.
pub(super) async fn obey(c: &mut Conversation<'_>, verb: Verb, argument: &[u8]) -> Obeyed {
    if matches!(c.state.who, Who::Nobody | Who::Named(_)) && !is_before_login(verb) {
        return Err(Answer::new(530, "Log in first: USER, then PASS."));
    }
    if verb != Verb::Rnto {
        c.state.renaming = None;
    }
    if !keeps_rest(verb) {
        c.state.rest = 0;
    }
    match verb {
        Verb::User => user::obey(c, argument),
        Verb::Pass => pass::obey(c, argument).await,
        Verb::Acct => Ok(Answer::new(202, "No account is needed beside the name.")),
        Verb::Cwd => cwd::obey(c, argument).await,
        Verb::Cdup => cwd::obey(c, b"..").await,
        Verb::Smnt => Err(NOT_HERE),
        Verb::Rein => rein::obey(c),
        Verb::Quit => quit::obey(),
        Verb::Port => port::obey(c, argument),
        Verb::Pasv => pasv::obey(c),
        Verb::Eprt => eprt::obey(c, argument),
        Verb::Epsv => epsv::obey(c, argument),
        Verb::Type => r#type::obey(c, argument),
        Verb::Stru => stru::obey(argument),
        Verb::Mode => mode::obey(argument),
        Verb::Retr => retr::obey(c, argument).await,
        Verb::Stor => stor::obey(c, argument).await,
        Verb::Stou => stou::obey(c, argument).await,
        Verb::Appe => appe::obey(c, argument).await,
        Verb::Allo => Ok(Answer::new(202, "No room needs to be set aside.")),
        Verb::Rest => rest::obey(c, argument),
        Verb::Rnfr => rnfr::obey(c, argument).await,
        Verb::Rnto => rnto::obey(c, argument).await,
        Verb::Abor => abor::obey(c),
        Verb::Dele => dele::obey(c, argument).await,
        Verb::Rmd => rmd::obey(c, argument).await,
        Verb::Mkd => mkd::obey(c, argument).await,
        Verb::Pwd => pwd::obey(c),
        Verb::List => list::obey(c, argument).await,
        Verb::Nlst => nlst::obey(c, argument).await,
        Verb::Mlst => mlst::obey(c, argument).await,
        Verb::Mlsd => mlsd::obey(c, argument).await,
        Verb::Size => size::obey(c, argument).await,
        Verb::Mdtm => mdtm::obey(c, argument).await,
        Verb::Mfmt => mfmt::obey(c, argument).await,
        Verb::Hash => hash::obey(c, argument).await,
        Verb::Site => site::obey(c, argument).await,
        Verb::Syst => syst::obey(),
        Verb::Stat => stat::obey(c, argument).await,
        Verb::Help => help::obey(),
        Verb::Noop => Ok(Answer::new(200, "Nothing done.")),
        Verb::Feat => feat::obey(c),
        Verb::Opts => opts::obey(c, argument),
        Verb::Auth | Verb::Pbsz | Verb::Prot => auth::obey(),
        Verb::Clnt => Ok(Answer::new(200, "Hello.")),
    }
}

/// Whether a command is accepted before login.
fn is_before_login(verb: Verb) -> bool {
    use Verb as V;
    matches!(verb, V::User | V::Pass | V::Acct | V::Quit | V::Rein | V::Feat | V::Opts | V::Help | V::Noop)
        || matches!(verb, V::Syst | V::Auth | V::Pbsz | V::Prot | V::Clnt)
}

/// Whether a command is accepted between REST and its transfer. "The REST command must be the last command
/// issued before the data transfer command" (RFC 3659, section 5.3), but clients open the data connection and
/// query the file in between.
fn keeps_rest(verb: Verb) -> bool {
    use Verb as V;
    matches!(verb, V::Rest | V::Retr | V::Stor | V::Appe | V::Pasv | V::Epsv | V::Port | V::Eprt | V::Type)
        || matches!(verb, V::Mode | V::Stru | V::Allo | V::Size | V::Mdtm | V::Noop | V::Stat)
}

/// The reply to a known command that is not implemented.
const NOT_HERE: Answer = Answer::new(502, "This server does not do that.");
