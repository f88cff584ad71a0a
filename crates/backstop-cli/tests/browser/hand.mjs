// The hand on the browser: one order a line as JSON on standard input, one answer a line on standard output.
//
// It decides nothing: what should be seen is said by the tests, in Rust. Every wait has a bound.
import { createInterface } from 'node:readline';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import { smaller } from './png.mjs';

const BOUND = 15000;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({
  executablePath: ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync),
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
let context, page, errors, requests, loads;

const orders = {
  // A fresh page; everything it complains about and everything it asks for is noted.
  async open({ url, scheme = 'light', width = 1200, height = 900, scripts = true, offline = false }) {
    await context?.close();
    [errors, requests, loads] = [[], [], 0];
    context = await browser.newContext({ colorScheme: scheme, viewport: { width, height }, javaScriptEnabled: scripts, offline });
    page = await context.newPage();
    page.setDefaultTimeout(BOUND);
    page.on('console', message => { if (['error', 'warning'].includes(message.type())) errors.push(message.text()); });
    page.on('pageerror', error => errors.push(String(error)));
    page.on('request', request => requests.push(request.url()));
    page.on('load', () => { loads += 1; });
    await page.goto(url);
    return await page.title();
  },
  // Waits until the page, or a part of it, has these words, without asking for it anew.
  async words({ words, selector = 'body' }) {
    await page.locator(selector, { hasText: words }).first().waitFor({ state: 'attached' });
    return loads;
  },
  // Waits until these words are gone.
  async gone({ words }) {
    await page.locator('body', { hasText: words }).waitFor({ state: 'detached' });
    return loads;
  },
  // Waits until it was loaded once more, by itself.
  async reloaded() {
    await page.waitForEvent('load');
    return loads;
  },
  async text({ selector }) { return await page.locator(selector).innerText(); },
  async all({ selector }) { return await page.locator(selector).allInnerTexts(); },
  async click({ selector }) { await page.locator(selector).click(); return true; },
  async open_all() { return await page.locator('details').evaluateAll(all => { all.forEach(one => { one.open = true; }); return all.length; }); },
  async is_open({ selector }) { return await page.locator(selector).evaluate(one => one.open); },
  async focus({ selector }) { await page.locator(selector).focus(); return true; },
  async focused() { return await page.evaluate(() => document.activeElement?.id ?? ''); },
  async scroll({ to }) { await page.evaluate(to => scrollTo(0, to), to); return true; },
  async scrolled() { return await page.evaluate(() => Math.round(scrollY)); },
  // Where the tabulator leads, until it comes back.
  async order() {
    await page.evaluate(() => { document.activeElement?.blur(); scrollTo(0, 0); });
    const seen = [];
    for (let step = 0; step < 60; step += 1) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(() => {
        const one = document.activeElement;
        if (!one || one === document.body) return null;
        return { name: one.id || one.getAttribute('href') || one.tagName, top: Math.round(one.getBoundingClientRect().top + scrollY),
          outline: getComputedStyle(one).outlineStyle };
      });
      if (!at || seen.some(known => known.name === at.name)) break;
      seen.push(at);
    }
    return seen;
  },
  // What the accessibility checker finds, by rule.
  async axe() {
    await page.evaluate(axe);
    const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
    return found.violations.map(one => `${one.id}: ${one.nodes.map(node => `${node.target} ${node.failureSummary}`).join(' | ')}`);
  },
  // How much wider the content is than the window.
  async overflow() { return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth); },
  async frame({ url }) {
    await page.setContent(`<iframe src="${url}"></iframe>`);
    return true;
  },
  async shot({ file }) { writeFileSync(file, smaller(await page.screenshot())); return true; },
  async seen() { return { errors, requests }; },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { order, ...rest } = JSON.parse(line);
  let answer;
  try {
    answer = { ok: await orders[order](rest) };
  } catch (error) {
    answer = { error: `${order}: ${error.message}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
