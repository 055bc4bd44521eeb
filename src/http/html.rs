//! The pages for people that the service serves itself: no scripts, and nothing from elsewhere.

use actix_web::{HttpResponse, http::header};

/// A page. The title and the content are HTML.
pub(super) fn page(title: &str, refresh_after: Option<u8>, content: &str) -> String {
    let refresh = refresh_after.map_or(String::new(), |seconds| {
        format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">")
    });
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\">{refresh}<title>{title}</title><style>{STYLE}</style></head><body><main>\
         {content}</main></body></html>"
    )
}

/// The answer with a page.
pub(super) fn answer(html: String) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
        ))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .body(html)
}

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#16181d;--dim:#5b6270;--page:#f4f5f7;--card:#fff;--line:#dfe2e8;--act:#1d4ed8}\
@media(prefers-color-scheme:dark){:root{--ink:#eef0f4;--dim:#a2a9b8;--page:#0e1014;--card:#181b21;--line:#2b303a;--act:#3b6ef5}}\
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
main{max-width:26rem;margin:8vh auto;padding:2rem;background:var(--card);border:1px solid var(--line);border-radius:16px}\
h1{margin:0;font-size:1.6rem;line-height:1.2}.version{margin:.25rem 0 1.5rem;color:var(--dim)}\
.version span{border:1px solid var(--line);border-radius:99px;padding:.1rem .6rem;margin-left:.4rem;font-size:.85rem}\
a.button{display:block;margin:.75rem 0 0;padding:.9rem 1rem;border-radius:10px;background:var(--act);color:#fff;text-align:center;font-weight:600;text-decoration:none}\
.facts{margin:.4rem 0 0;color:var(--dim);font-size:.8rem;overflow-wrap:anywhere}.note{color:var(--dim);font-size:.9rem}\
pre{white-space:pre-wrap;font:inherit;border-top:1px solid var(--line);margin:1.5rem 0 0;padding-top:1rem}\
figure{margin:1.75rem 0 0;text-align:center;color:var(--dim);font-size:.85rem}figure svg{width:11rem;height:11rem;border-radius:8px}";

/// Text as HTML.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
