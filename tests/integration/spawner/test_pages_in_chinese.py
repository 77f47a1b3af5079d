"""The hub's pages in the language that their reader chose."""

from __future__ import annotations

from support.hubs.hub_stack import PASSWORD, Browser

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9"}


def test_a_person_chooses_the_language_on_the_login_page_without_a_script(stack):
    person = Browser(stack)
    assert '<html lang="en">' in person.get("/hub/login").text
    chosen = person.post("/hub/login", "/hub/language", {"language": "zh-CN", "next": "/hub/login"})
    assert str(chosen.url).endswith("/hub/login")
    assert '<html lang="zh-CN">' in chosen.text
    assert "登录" in chosen.text
    assert "密码" in person.get("/hub/signup").text


def test_a_browser_is_answered_in_its_own_language(stack):
    assert '<html lang="zh-CN">' in Browser(stack).get("/hub/login", headers=CHINESE).text
    assert '<html lang="en">' in Browser(stack).get("/hub/login", headers={"Accept-Language": "de"}).text


def test_nobody_is_led_elsewhere_by_the_form(stack):
    form = {"language": "zh-CN", "next": "https://evil.example/"}
    assert "evil.example" not in str(Browser(stack).post("/hub/login", "/hub/language", form).url)


def test_a_language_that_is_not_spoken_here_is_refused(stack):
    assert Browser(stack).post("/hub/login", "/hub/language", {"language": "xx"}).status_code == 400


def test_wrong_passwords_and_missing_pages_are_reported_in_chinese(stack):
    person = Browser(stack)
    person.post("/hub/login", "/hub/language", {"language": "zh-CN"})
    assert "用户名或密码" in person.login("nobody-here", "a wrong password").text
    assert "没有这个页面" in person.get("/hub/no-such-page").text


def test_a_permanent_language_choice_follows_the_user_to_every_browser(stack):
    stack.add("ann")
    one, other = Browser(stack), Browser(stack)
    one.login("ann", PASSWORD)
    one.post("/hub/home", "/hub/language", {"language": "zh-CN"})
    assert '<html lang="zh-CN">' in one.get("/hub/home", headers={"Accept-Language": "en"}).text
    assert '<html lang="en">' in other.get("/hub/login").text
    other.login("ann", PASSWORD)
    assert '<html lang="zh-CN">' in other.get("/hub/home", headers={"Accept-Language": "en"}).text
    other.post("/hub/home", "/hub/language", {"language": "en"})
    assert '<html lang="en">' in one.get("/hub/home", headers=CHINESE).text


def test_a_form_of_another_site_chooses_nothing(stack):
    stack.add("eva")
    person = Browser(stack)
    person.login("eva", PASSWORD)
    sent = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    assert person.http.post("/hub/language", data={"language": "zh-CN"}, headers=sent).status_code == 403
    assert person.http.post("/hub/language", data={"language": "zh-CN"}).status_code == 403
    assert '<html lang="en">' in person.get("/hub/home", headers={"Accept-Language": "en"}).text
