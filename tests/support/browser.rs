//! Chromium and Firefox without a window, driven through `chromedriver` and `geckodriver`. Parts of a page
//! are found as people and screen readers find them: by role and accessible name.

use super::{requires, service::LONGEST};
use fantoccini::{
    Client, ClientBuilder, Locator, elements::Element, error::CmdError, key::Key,
    wd::WebDriverCompatibleCommand,
};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};
use tokio::runtime::{Builder, Runtime};
use url::{ParseError, Url};

pub struct Browser {
    driver: Client,
    runtime: Runtime,
    process: Child,
    /// Open for as long as the driver may write to it.
    _output: BufReader<ChildStdout>,
}

/// Elements that may have a role.
const PARTS: &str =
    "a, button, dialog, h1, h2, h3, input:not([type=hidden]), select, summary, textarea, [role]";

/// The parts of a page whose texts hold a name. To ask the browser for the role and the name of every
/// part takes a hundred commands on a large page.
const NEAR: &str = "const [parts, name] = arguments; \
    const plain = (texts) => texts.join('').replace(/\\s/g, ''); \
    return [...document.querySelectorAll(parts)].filter((part) => { \
        const by = (part.getAttribute('aria-labelledby') ?? '').split(' '); \
        const labels = [...(part.labels ?? []), ...by.map((id) => document.getElementById(id))]; \
        const own = [part.textContent, part.ariaLabel, part.value, part.title, part.placeholder]; \
        return plain([...own, ...labels.map((label) => label?.textContent)]).includes(plain([name])); \
    });";

/// What has no role of its own, as Chromium calls it and as Firefox does: a field for a password, and the
/// summary of details.
const NAMELESS: [(&str, &[&str]); 2] =
    [("textbox", &["", "generic"]), ("DisclosureTriangle", &["", "generic", "button", "summary"])];

/// The widths of a phone and of a computer, in CSS pixels.
const WIDTHS: [u32; 2] = [390, 1280];

/// A command that the client library does not know: the rest of its path, and its body.
#[derive(Debug)]
struct Other(String, Option<Value>);

impl WebDriverCompatibleCommand for Other {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.0))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        match &self.1 {
            None => (Method::GET, None),
            Some(body) => (Method::POST, Some(body.to_string())),
        }
    }
}

/// How long a page may take to show what is expected.
const WITHIN: Duration = Duration::from_secs(60);

/// Whether an element has this role and name.
async fn fits(
    driver: &Client,
    element: &Element,
    role: &str,
    name: &str,
) -> Result<bool, CmdError> {
    let computed = async |what| {
        let path = format!("element/{}/{what}", &*element.element_id());
        driver.issue_cmd(Other(path, None)).await
    };
    let found = computed("computedrole").await?;
    let found = found.as_str().unwrap_or_default();
    let is_it = found == role
        || NAMELESS.iter().any(|(ours, theirs)| *ours == role && theirs.contains(&found));
    Ok(is_it && computed("computedlabel").await? == name)
}

impl Browser {
    /// A new browser, without cookies. `None` where a program that it needs is missing.
    pub fn start(test: &str) -> Option<Browser> {
        Browser::start_with(test, json!({}))
    }

    /// A browser that runs no scripts of pages.
    pub fn start_without_scripts(test: &str) -> Option<Browser> {
        Browser::start_with(test, json!({"profile.managed_default_content_settings.javascript": 2}))
    }

    fn start_with(test: &str, preferences: Value) -> Option<Browser> {
        if !requires::programs(test, &["chromium", "chromedriver"]) {
            return None;
        }
        // Chromium refuses root with its sandbox, and containers have a small /dev/shm.
        let args = ["--headless", "--no-sandbox", "--disable-dev-shm-usage"];
        let options = json!({"args": args, "prefs": preferences});
        let begins = "started successfully on port ";
        let browser = Browser::driven_by("chromedriver", begins, ("goog:chromeOptions", options));
        browser.set_size(WIDTHS[1], 900);
        Some(browser)
    }

    /// A new Firefox, without cookies. `None` where a program that it needs is missing.
    pub fn start_firefox(test: &str) -> Option<Browser> {
        let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/bin/geckodriver");
        if !requires::programs(test, &["firefox-esr", driver]) {
            return None;
        }
        let args = ["-headless", "--width=1280", "--height=900"];
        let options = json!({"binary": "/usr/bin/firefox-esr", "args": args});
        let begins = "Listening on 127.0.0.1:";
        Some(Browser::driven_by(driver, begins, ("moz:firefoxOptions", options)))
    }

    /// A browser by its driver, which prints its port behind these words when it listens.
    fn driven_by(driver: &str, begins: &str, options: (&str, Value)) -> Browser {
        let mut command = Command::new(driver);
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let port = output.by_ref().lines().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once(begins)?;
            Some(rest.trim_end_matches('.').to_owned())
        });
        // Scripts may take as long as pages. By default, it would be half of that.
        let timeouts = json!({"script": WITHIN.as_millis()});
        let wanted = [options, ("timeouts", timeouts)];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let address = format!("http://127.0.0.1:{}", port.unwrap());
        let mut session = ClientBuilder::new(HttpConnector::new());
        session.capabilities(wanted);
        let driver = runtime.block_on(session.connect(&address)).unwrap();
        Browser { driver, runtime, process, _output: output }
    }

    /// Goes to an address, and waits until its page is loaded.
    pub fn open(&self, url: &str) {
        self.runtime.block_on(self.driver.goto(url)).unwrap();
    }

    pub fn url(&self) -> String {
        self.runtime.block_on(self.driver.current_url()).unwrap().into()
    }

    /// What the page says.
    pub fn text(&self) -> String {
        let text = async || self.driver.find(Locator::Css("body")).await?.text().await;
        let begun = Instant::now();
        loop {
            // The page may just be replaced by the next one.
            match self.runtime.block_on(text()) {
                Ok(text) if !text.is_empty() => return text,
                nothing => {
                    assert!(begun.elapsed() < WITHIN, "{} says nothing: {nothing:?}", self.url())
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the page says this.
    pub fn says(&self, words: &str) {
        self.says_within(words, WITHIN, || std::thread::sleep(Duration::from_millis(20)));
    }

    /// Waits until the page says this by itself, after work of the container engine.
    pub fn says_in_time(&self, words: &str) {
        self.says_within(words, LONGEST, || std::thread::sleep(Duration::from_millis(20)));
    }

    /// Waits until the page says this by itself, or after it was loaded again.
    pub fn comes_to_say(&self, words: &str) {
        self.says_within(words, LONGEST, || {
            std::thread::sleep(Duration::from_millis(500));
            self.runtime.block_on(self.driver.refresh()).unwrap();
        });
    }

    fn says_within(&self, words: &str, limit: Duration, pause: impl Fn()) {
        let begun = Instant::now();
        while !self.text().contains(words) {
            let (url, text) = (self.url(), self.text());
            assert!(begun.elapsed() < limit, "{url} does not say {words:?}: {text}");
            pause();
        }
    }

    /// See [`NEAR`]. None where scripts do not run.
    async fn near(&self, name: &str) -> Vec<Element> {
        let found = self.driver.execute(NEAR, vec![json!(PARTS), json!(name)]).await;
        let found = found.and_then(|found| Ok(serde_json::from_value::<Vec<_>>(found)?));
        let references: Vec<HashMap<String, String>> = found.unwrap_or_default();
        let ids = references.into_iter().flat_map(HashMap::into_values);
        ids.map(|id| Element::from_element_id(self.driver.clone(), id.into())).collect()
    }

    /// Waits until the page has a part with this role and name.
    pub fn find(&self, role: &str, name: &str) -> Element {
        let first = async |parts: Vec<Element>| -> Result<Option<Element>, CmdError> {
            for element in parts {
                if fits(&self.driver, &element, role, name).await? {
                    return Ok(Some(element));
                }
            }
            Ok(None)
        };
        let look = async || match first(self.near(name).await).await? {
            // A name may also come from a style.
            None => first(self.driver.find_all(Locator::Css(PARTS)).await?).await,
            found => Ok(found),
        };
        let begun = Instant::now();
        loop {
            // An element of the page before is gone.
            if let Ok(Some(found)) = self.runtime.block_on(look()) {
                return found;
            }
            let (url, text) = (self.url(), self.text());
            assert!(begun.elapsed() < WITHIN, "{url} has no {role} {name:?}: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Does something with a part of the page. If the page is replaced meanwhile, it does so with the
    /// part of the next page.
    fn with<T>(
        &self,
        (role, name): (&str, &str),
        act: impl AsyncFn(Element) -> Result<T, CmdError>,
    ) -> T {
        let begun = Instant::now();
        loop {
            match self.runtime.block_on(act(self.find(role, name))) {
                Ok(done) => return done,
                Err(e) => assert!(
                    e.is_stale_element_reference() && begun.elapsed() < WITHIN,
                    "the {role} {name:?}: {e}"
                ),
            }
        }
    }

    /// Clicks on a part of the page. What comes next finds the page to which that leads.
    pub fn click(&self, role: &str, name: &str) {
        self.with((role, name), async |element| element.click().await);
        // A click that sends a form returns a moment before the browser goes to the next page. From then
        // on, chromedriver waits for that page.
        std::thread::sleep(Duration::from_millis(20));
    }

    /// Replaces what is in a field.
    pub fn fill(&self, role: &str, name: &str, text: &str) {
        self.with((role, name), async |field| {
            field.clear().await?;
            field.send_keys(text).await
        });
    }

    /// Replaces what is in a field at once, as people paste a long text.
    pub fn paste(&self, role: &str, name: &str, text: &str) {
        let set = "arguments[0].value = arguments[1];";
        self.with((role, name), async |field| {
            self.driver.execute(set, vec![json!(field), json!(text)]).await
        });
    }

    /// What is in a field.
    pub fn value(&self, role: &str, name: &str) -> String {
        self.with((role, name), async |field| field.prop("value").await).unwrap_or_default()
    }

    /// Chooses an option of a list.
    pub fn choose(&self, name: &str, option: &str) {
        let option = format!("./option[normalize-space() = '{option}']");
        self.with(("combobox", name), async |list| {
            list.find(Locator::XPath(&option)).await?.click().await
        });
    }

    /// Chooses a file in the first field for files.
    pub fn choose_file(&self, file: &Path) {
        self.choose_file_of("input[type=file]", file);
    }

    /// Chooses a file in the field that a CSS selector names: fields for files have no role.
    pub fn choose_file_of(&self, field: &str, file: &Path) {
        let field = self.runtime.block_on(self.driver.find(Locator::Css(field))).unwrap();
        self.runtime.block_on(field.send_keys(&file.display().to_string())).unwrap();
    }

    /// Presses keys.
    pub fn keys(&self, keys: &str) {
        let typed = async { self.driver.active_element().await?.send_keys(keys).await };
        self.runtime.block_on(typed).unwrap();
    }

    /// Presses the Tab key until this part has the focus.
    pub fn tab_to(&self, role: &str, name: &str) {
        let reached = (0..100).any(|_| {
            self.keys(&Key::Tab.to_string());
            let fits = async {
                fits(&self.driver, &self.driver.active_element().await?, role, name).await
            };
            self.runtime.block_on(fits).unwrap()
        });
        assert!(reached, "no key leads to the {role} {name:?}");
    }

    /// Sets the size of the screen, in CSS pixels.
    pub fn set_size(&self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let command = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": size});
        let set = self.driver.issue_cmd(Other("goog/cdp/execute".into(), Some(command)));
        self.runtime.block_on(set).unwrap();
    }

    /// Runs a script that ends with a call of its last argument, and returns what it gives.
    pub fn run_async(&self, script: &str) -> Value {
        self.runtime.block_on(self.driver.execute_async(script, vec![])).unwrap()
    }

    /// Makes the browser prefer a colour scheme: `light` or `dark`.
    pub fn prefer(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let params = json!({"features": features});
        let command = json!({"cmd": "Emulation.setEmulatedMedia", "params": params});
        let prefer = self.driver.issue_cmd(Other("goog/cdp/execute".to_owned(), Some(command)));
        self.runtime.block_on(prefer).unwrap();
    }

    /// Asserts that the page fits a screen of this width without scrolling sideways, and returns its
    /// height.
    pub fn fits(&self, name: &str, width: u32) -> u32 {
        self.set_size(width, 900);
        // The page may follow its size with a script, which runs before it is shown.
        let measured = self.run_async(
            "const [done] = arguments, root = document.documentElement; \
             const measure = () => done([root.scrollWidth, root.scrollHeight]); \
             requestAnimationFrame(() => requestAnimationFrame(measure));",
        );
        let [wide, high]: [u32; 2] = serde_json::from_value(measured).unwrap();
        assert!(wide <= width, "{name} is {wide} wide on a screen of {width}");
        high
    }

    /// Makes a picture of the page, which is as high as given.
    pub fn picture(&self, file: &Path, high: u32) {
        let inner = "return window.innerWidth;";
        let width = self.runtime.block_on(self.driver.execute(inner, vec![])).unwrap();
        self.set_size(serde_json::from_value(width).unwrap(), high);
        let picture = self.runtime.block_on(self.driver.screenshot()).unwrap();
        std::fs::write(file, picture).unwrap();
    }

    /// Makes a picture of the page for each of these widths, which the page fits. Leaves the last width.
    pub fn pictures(&self, folder: &Path, name: &str, widths: [u32; 2]) {
        std::fs::create_dir_all(folder).unwrap();
        for width in widths {
            let high = self.fits(name, width);
            self.picture(&folder.join(format!("{name}-{width}.png")), high);
        }
        self.set_size(widths[1], 900);
    }

    /// Asserts that the page fits phones and computers without scrolling sideways. Leaves a picture
    /// for each of them in `target/tmp`.
    pub fn check_layout(&self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
        self.pictures(&folder, name, WIDTHS);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(self.driver.clone().close());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
