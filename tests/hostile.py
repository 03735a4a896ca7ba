"""Texts that a trace may hold and that must stay text: each would act where a page, a sheet or a shell heeds it.

Whatever one of them makes bears the attribute `evil`; whatever one of them asks for lies under `/hostile/` or at
`evil.invalid`; whatever one of them runs sets `window.evil`.
"""

from __future__ import annotations

ASK = "/hostile/x"
TAKEOVER = (
    """<div evil hx-post="/account/users/" hx-trigger="load" hx-swap="none" hx-target="this" """
    """hx-vals='{"name": "mallory", "role": "admin", "password": "a-password-of-mallory"}'></div>"""
)
"""An element that makes a new admin where htmx heeds it in an admin's session."""

_SCRIPTS = (
    "<script evil>window.evil = 1</script>",
    f'<script evil src="{ASK}.js"></script>',
    f'<script evil type="module" src="{ASK}.mjs"></script>',
    "</script><script evil>window.evil = 1</script>",
    '</script><svg evil onload="window.evil = 1">',
    "<scr<script>ipt evil>window.evil = 1</scr</script>ipt>",
    "<SCRIPT evil\n>window.evil = 1</SCRIPT\n>",
    "<noscript><p title='</noscript><img evil src=/hostile/x onerror=window.evil=1>'>",
)
_HANDLERS = (
    f"<img evil src={ASK} onerror=window.evil=1>",
    f"<img evil src='{ASK}' onload='window.evil = 1'>",
    "<input evil autofocus onfocus=window.evil=1>",
    "<details evil open ontoggle=window.evil=1><summary>x</summary></details>",
    f"<video evil autoplay src={ASK}.mp4 onerror=window.evil=1></video>",
    f"<audio evil autoplay src={ASK}.mp3></audio>",
    "<marquee evil onstart=window.evil=1>x</marquee>",
    "<p evil onpointerenter=window.evil=1 onanimationstart=window.evil=1>x</p>",
    "<body evil onload=alert(1) onpageshow=alert(2)>",
)
_HTMX = (
    TAKEOVER,
    f'<div evil hx-get="{ASK}" hx-trigger="load"></div>',
    f'<div evil data-hx-get="{ASK}" data-hx-trigger="load"></div>',
    f'<div evil hx-get="{ASK}" hx-trigger="revealed"></div>',
    f'<div evil hx-get="{ASK}" hx-trigger="intersect once"></div>',
    f'<div evil hx-get="{ASK}" hx-trigger="every 100ms"></div>',
    f'<div evil hx-delete="{ASK}" hx-trigger="load" hx-confirm="really?"></div>',
    f'<div evil hx-put="{ASK}" hx-trigger="load" hx-include="closest body"></div>',
    f"<div evil hx-post='{ASK}' hx-trigger='load' hx-vals='js:{{stolen: document.cookie}}'></div>",
    "<div evil hx-on::load='window.evil = 1' hx-on:htmx:after-settle='window.evil = 1'></div>",
    "<div evil data-hx-on:click='window.evil = 1' hx-on='click: window.evil = 1'></div>",
    f'<div evil hx-get="{ASK}" hx-trigger="load[window.evil = 1]" hx-target="body" hx-push-url="{ASK}"></div>',
    f'<div evil hx-boost="true"><a href="{ASK}">x</a></div>',
    '<div evil id="detail" hx-swap-oob="true">replaced</div>',
    f'<div evil hx-swap-oob="beforeend:main"><img evil src={ASK}></div>',
    '<div evil hx-ext="x" sse-connect="/hostile/x" ws-connect="/hostile/x"></div>',
    '<title>taken</title><template><div evil hx-swap-oob="innerHTML:#main">x</div></template>',
)
_MARKUP = (
    f"<svg evil><image href={ASK}.svg /><animate onbegin=window.evil=1 attributeName=x /></svg>",
    f"<math evil><mtext><table><mglyph><style><img evil src={ASK} onerror=x()></style></mglyph></table></math>",
    f"<iframe evil src={ASK}></iframe>",
    "<iframe evil srcdoc='<script>parent.evil = 1</script>'></iframe>",
    f"<object evil data={ASK}></object><embed evil src={ASK}>",
    "<base evil href=//evil.invalid/>",
    f'<meta evil http-equiv="refresh" content="0;url={ASK}">',
    f'</pre></textarea></title><form evil action="{ASK}" method="post"><button autofocus>x</button></form>',
    f"<style evil>@import '{ASK}.css'; body {{ background: url({ASK}.png) }}</style>",
    f'<link evil rel="stylesheet" href="{ASK}.css"><link evil rel="prefetch" href="//evil.invalid/x">',
    f"<p evil style=\"background: url('{ASK}.png')\">x</p>",
    f"<table evil background={ASK}.png><td background={ASK}.png>x</table>",
    f'</main></body><dialog evil open><a ping={ASK} href="{ASK}">x</a></dialog>',
    f"<picture evil><source srcset={ASK}.webp><img evil srcset='{ASK}.png 2x'></picture>",
)
_BREAKOUTS = (
    "{{ 7654321|add:1 }}{% csrf_token %}{{ request.user.password }}${7654321+1}<%= 7654321+1 %>",
    f'" evil onmouseover=window.evil=1 autofocus onfocus=window.evil=1 src={ASK} x="',
    f"' evil hx-get='{ASK}' hx-trigger='load' x='",
    f"` evil src={ASK} onerror=window.evil=1 `",
    f"x evil onfocus=window.evil=1 autofocus tabindex=1 style=x:url({ASK})",
    f'"}}]}}</script><img evil src={ASK}>',
    f"--><img evil src={ASK} onerror=window.evil=1><!--",
    f"]]><img evil src={ASK}><![CDATA[",
    f"&lt;img evil src={ASK}&gt;&#60;img evil src={ASK}&#62;&amp;lt;",
    f"\\u003cimg evil src={ASK}\\u003e\\x3cimg evil src={ASK}\\x3e",
    "javascript:window.evil=1",
    " \tjava\nscript:window.evil=1//",
    "data:text/html,<script>window.evil=1</script>",
    f"[x](javascript:window.evil=1) ![x]({ASK}.png) <javascript:window.evil=1> [y]({ASK} 'z')",
    f"# <img evil src={ASK}>\n\n[a]: javascript:window.evil=1\n[a] <b evil>x</b> `</code><img evil src={ASK}>`",
    f"<a href='javascript:window.evil=1'>x</a><b>y</b><br>%{{x}}<extra evil><img evil src={ASK}></extra>",
)
_CHARACTERS = (
    "\u202egnp.exe\u202c \u2066x\u2069 \u200f\u200b\ufeff",
    f"a\x00b<\x00img evil src={ASK}>",
    f"half \ud800 and \udfff<img evil src={ASK}>",
    f"\x1b]8;;{ASK}\x1b\\x\x1b]8;;\x1b\\ \x1b[2J\x1b[31mred\x07 \x9b31m",
    f'=HYPERLINK("{ASK}","x")',
    "+1+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1\r\n-2+3,\"x\",'y'",
    f"x\r\nSet-Cookie: evil=1\r\n\r\n<img evil src={ASK}>",
    "../../../../etc/passwd\n; rm -rf / $(touch evil) `touch evil` | x & y",
)
TEXTS = (*_SCRIPTS, *_HANDLERS, *_HTMX, *_MARKUP, *_BREAKOUTS, *_CHARACTERS)
