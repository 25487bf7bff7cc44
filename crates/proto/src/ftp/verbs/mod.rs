//! The commands, one file each. Related ones share a file: CDUP is in `cwd`; PBSZ, PROT and CCC are in
//! `auth`.
//!
//! Invariants: before login, only the login commands and those that explain them are accepted. A command that
//! is not accepted changes nothing.

mod abor;
mod allo;
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

use super::announcement::Announcement;
use super::conversation::Conversation;
use super::reply::{CommandResult, Reply};
use super::state::Login;

/// Executes a command.
pub(super) async fn execute(c: &mut Conversation<'_>, verb: Verb, argument: &[u8]) -> CommandResult {
    if matches!(c.state.login, Login::None | Login::NameGiven(_)) && !is_before_login(verb) {
        return Err(Reply::new(530, "Log in first: USER, then PASS."));
    }
    if verb != Verb::Rnto {
        c.state.renaming = None;
    }
    if !keeps_rest(verb) {
        c.state.rest = 0;
        c.state.announcement = Announcement::default();
    }
    match verb {
        Verb::User => user::execute(c, argument),
        Verb::Pass => pass::execute(c, argument).await,
        Verb::Acct => Ok(Reply::new(202, "No account is needed beside the name.")),
        Verb::Cwd => cwd::execute(c, argument).await,
        Verb::Cdup => cwd::execute(c, b"..").await,
        Verb::Smnt => Err(NOT_IMPLEMENTED),
        Verb::Rein => rein::execute(c),
        Verb::Quit => quit::execute(),
        Verb::Port => port::execute(c, argument),
        Verb::Pasv => pasv::execute(c),
        Verb::Eprt => eprt::execute(c, argument),
        Verb::Epsv => epsv::execute(c, argument),
        Verb::Type => r#type::execute(c, argument),
        Verb::Stru => stru::execute(argument),
        Verb::Mode => mode::execute(argument),
        Verb::Retr => retr::execute(c, argument).await,
        Verb::Stor => stor::execute(c, argument).await,
        Verb::Stou => stou::execute(c, argument).await,
        Verb::Appe => appe::execute(c, argument).await,
        Verb::Allo => allo::execute(c, argument),
        Verb::Rest => rest::execute(c, argument),
        Verb::Rnfr => rnfr::execute(c, argument).await,
        Verb::Rnto => rnto::execute(c, argument).await,
        Verb::Abor => abor::execute(c),
        Verb::Dele => dele::execute(c, argument).await,
        Verb::Rmd => rmd::execute(c, argument).await,
        Verb::Mkd => mkd::execute(c, argument).await,
        Verb::Pwd => pwd::execute(c),
        Verb::List => list::execute(c, argument).await,
        Verb::Nlst => nlst::execute(c, argument).await,
        Verb::Mlst => mlst::execute(c, argument).await,
        Verb::Mlsd => mlsd::execute(c, argument).await,
        Verb::Size => size::execute(c, argument).await,
        Verb::Mdtm => mdtm::execute(c, argument).await,
        Verb::Mfmt => mfmt::execute(c, argument).await,
        Verb::Hash => hash::execute(c, argument).await,
        Verb::Site => site::execute(c, argument).await,
        Verb::Syst => syst::execute(),
        Verb::Stat => stat::execute(c, argument).await,
        Verb::Help => help::execute(),
        Verb::Noop => Ok(Reply::new(200, "Nothing done.")),
        Verb::Feat => feat::execute(c),
        Verb::Opts => opts::execute(c, argument),
        Verb::Auth => auth::auth(c, argument),
        Verb::Pbsz => auth::pbsz(c, argument),
        Verb::Prot => auth::prot(c, argument),
        Verb::Ccc => auth::ccc(c),
        Verb::Clnt => Ok(Reply::new(200, "Hello.")),
    }
}

/// Whether a command is accepted before login.
fn is_before_login(verb: Verb) -> bool {
    use Verb as V;
    matches!(verb, V::User | V::Pass | V::Acct | V::Quit | V::Rein | V::Feat | V::Opts | V::Help | V::Noop)
        || matches!(verb, V::Syst | V::Auth | V::Pbsz | V::Prot | V::Ccc | V::Clnt)
}

/// Whether a command is accepted between REST, ALLO or OPTS STOR and the transfer. "The REST command must be
/// the last command issued before the data transfer command" (RFC 3659, section 5.3), but clients open the
/// data connection and query the file in between.
fn keeps_rest(verb: Verb) -> bool {
    use Verb as V;
    matches!(
        verb,
        V::Rest | V::Retr | V::Stor | V::Stou | V::Appe | V::Pasv | V::Epsv | V::Port | V::Eprt | V::Type
    ) || matches!(verb, V::Mode | V::Stru | V::Allo | V::Opts | V::Size | V::Mdtm | V::Noop | V::Stat)
}

/// The reply to a known command that is not implemented.
const NOT_IMPLEMENTED: Reply = Reply::new(502, "This server does not do that.");
