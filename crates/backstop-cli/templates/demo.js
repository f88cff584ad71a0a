// Renews the page in place twice a second, and presses buttons without leaving it.
(() => {
  'use strict';
  const one = id => document.getElementById(id);
  const lost = one('lost');
  let timer, asked = 0;
  const put = html => {
    const next = new DOMParser().parseFromString(html, 'text/html');
    if (!next.getElementById('counted')) throw new Error('another page');
    for (const part of next.querySelectorAll('[data-part]')) {
      const old = one(part.id);
      if (!old || old.innerHTML === part.innerHTML) continue;
      const focus = old.contains(document.activeElement) ? document.activeElement.id : '';
      old.innerHTML = part.innerHTML;
      if (focus && one(focus)) one(focus).focus({ preventScroll: true });
    }
  };
  const look = async () => {
    clearTimeout(timer);
    const number = asked += 1;
    try {
      const answer = await fetch('/', { cache: 'no-store', signal: AbortSignal.timeout(5000) });
      if (!answer.ok) throw new Error(answer.status);
      const html = await answer.text();
      if (number !== asked) return;
      put(html);
      lost.hidden = true;
    } catch {
      if (number !== asked) return;
      lost.textContent = 'The demo has ended. What is below is from before.';
      lost.hidden = false;
    }
    timer = setTimeout(look, document.hidden ? 3000 : 500);
  };
  document.addEventListener('submit', async event => {
    event.preventDefault();
    const form = event.target;
    try {
      await fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form)), redirect: 'manual' });
    } catch { /* the next look says that nobody answers */ }
    look();
  });
  timer = setTimeout(look, 500);
})();
