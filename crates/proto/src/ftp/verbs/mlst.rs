//! MLST: "MLST provides data about exactly the object named on its command line, and no others. [...] if no
//! object is named, the current directory is assumed" (RFC 3659, section 7). It goes over the control
//! connection.

use plimsoll_wire::ftp::facts::mlst_line;

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::listing::told;
use crate::ftp::place::{absolute, shown};

pub(super) async fn obey(c: &mut Conversation<'_>, path: &[u8]) -> Obeyed {
    let (stat, rights) = c.stat_of(path).await?;
    let whole = absolute(&c.state.folder, path);
    let line = mlst_line(&told(shown(&whole), &stat, rights), c.state.facts);
    Ok(Answer::lines(250, "What is known of it:", vec![line], "End"))
}
