//! The real binary from outside: its command line, its signals, and common clients.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "tests"
)]

mod account;
mod accounts_under_faults;
mod acme;
mod archives;
mod backup;
mod browser;
mod changing;
mod channel;
mod classic;
mod clients;
mod command_line;
mod configuration;
mod crowd;
mod curl;
mod data_folder;
mod databases;
mod demo;
mod descriptors;
mod directory;
mod doctor;
mod documents;
mod durable;
mod environment;
mod faults;
mod ftp;
mod ftp_settings;
mod full;
mod hostile;
mod http_cache;
mod https;
mod kept_files;
mod killed;
mod lab;
mod lab_conditions;
mod lab_paths;
mod lab_profiles;
mod lab_ssh;
mod load;
mod manual;
mod named_clients;
mod packaging;
mod passwords;
mod person;
mod pipelines;
mod plain_passwords;
mod pool;
mod prefetch;
mod processes;
mod proxies;
mod proxy_cache;
mod ready;
mod reload;
mod reverse_proxy;
mod revoked_rights;
mod service_manager;
mod signals;
mod slots;
mod slow_clients;
mod smuggling;
mod soak;
mod stop_under_load;
mod stores;
mod ten;
mod tiers;
mod tiers_over_tls;
mod traced;
mod web_page;
mod web_servers;
mod webdav;
mod wget;
