import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrowserContext, Page, Response } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { hasBrowser, heading, type WatchedPage } from '../support/browser.ts'
import { imageLayout, layoutTar } from '../support/content-uploads.ts'
import { useHostPages } from '../support/host-pages.ts'
import { plantCluster } from '../support/planted-cluster.ts'
import { logoutPath, renewalPath, sessionsPath } from '../support/test-edge.ts'
import { hourMs, minuteMs } from '../support/turning-clock.ts'

/** The bodies of the requests of a browser for a path, those of all its tabs. A renewal has its refresh token in it. */
function bodiesOf(context: BrowserContext, path: string): (string | null)[] {
  const bodies: (string | null)[] = []
  context.on('request', (request) => {
    if (new URL(request.url()).pathname === path) bodies.push(request.postData())
  })
  return bodies
}

const warning = (page: Page) => page.getByText(/^Your session ends in \d+ s, since the page is not used\./)
const ended = (page: Page) => page.getByRole('dialog', { name: 'Your session has ended' })

/** Seconds that the warning says. */
const secondsLeft = async (page: Page) => Number(/\d+/.exec((await warning(page).textContent()) ?? '')?.[0])

describe.skipIf(!hasBrowser)('the session of the pages of a host', () => {
  const { start, edge, address, enter, openTab, turn } = useHostPages()
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'edgehostd-session-'))
  })
  // Tests turn the clock of their host.
  beforeEach(() => start({ prepare: plantCluster }))
  afterAll(() => rm(folder, { recursive: true }))

  /** Sessions of alice, with a new one to look. */
  async function sessionsOf(): Promise<number> {
    const { access } = await edge().login('alice')
    const { items } = (await edge().get(sessionsPath, access)).json<{ items: unknown[] }>()
    return items.length
  }

  /** A page is used: it reads what only a session gets. */
  async function isUsable({ page }: WatchedPage): Promise<void> {
    await page.goto(`${address()}/#/access`)
    await page.getByText('this one').waitFor()
    await page.goto(`${address()}/#/content`)
    await heading(page).getByText('Content').waitFor()
    expect(await ended(page).count()).toBe(0)
  }

  it('a warning counts down the last two of 30 minutes without input: an input keeps the session, without one it ends', async () => {
    const before = await sessionsOf()
    const tab = await enter('alice', { isTurned: true })
    const { page, context } = tab
    const renewals = bodiesOf(context, renewalPath)
    const logouts = bodiesOf(context, logoutPath)
    await page.goto(`${address()}/#/access`)
    await page.getByText('this one').waitFor()
    /** A token that has just been renewed has to be used before it is too old again. */
    const turnAndRead = async (ms: number) => {
      const isRead = (reply: Response) =>
        new URL(reply.url()).pathname === sessionsPath && reply.status() === 200
      const read = page.waitForResponse(isRead)
      await turn(tab, ms)
      await read
    }
    await turnAndRead(27 * minuteMs)
    await page.clock.runFor(2_000)
    expect(await warning(page).count()).toBe(0)
    await turn(tab, minuteMs + 10_000)
    await warning(page).waitFor()
    const first = await secondsLeft(page)
    expect(first).toBeGreaterThan(60)
    expect(first).toBeLessThanOrEqual(110)
    await turn(tab, 30_000)
    await expect.poll(() => secondsLeft(page)).toBeLessThanOrEqual(first - 30)
    await page.keyboard.press('Shift')
    await warning(page).waitFor({ state: 'detached' })
    const { length } = renewals
    // By then the session would have ended.
    await turnAndRead(14 * minuteMs)
    await expect.poll(() => renewals.length).toBeGreaterThan(length)
    expect(await ended(page).count()).toBe(0)

    const [renewed, loggedOut] = [renewalPath, logoutPath].map((path) => page.waitForResponse(`**${path}`))
    await turnAndRead(15 * minuteMs)
    await warning(page).waitFor()
    await renewed
    expect(logouts).toEqual([])
    await turn(tab, minuteMs + 1_000)
    await ended(page).waitFor()
    await loggedOut
    expect(await warning(page).count()).toBe(0)
    expect(page.url()).toBe(`${address()}/#/access`)
    expect(await page.getByText('this one').count()).toBe(1)
    // The look itself is one more.
    expect(await sessionsOf()).toBe(before + 1)
    await ended(page).getByLabel('Password', { exact: true }).fill('alice pass')
    await ended(page).getByRole('button', { name: 'Log in' }).click()
    await ended(page).waitFor({ state: 'detached' })
    await isUsable(tab)
  })

  it('an upload keeps the session while it runs, against an unused tab beside it, and begins the 30 minutes anew', async () => {
    const tab = await enter('alice', { isTurned: true })
    const { page } = tab
    const other = await openTab(tab)
    await heading(other.page).waitFor()
    const file = join(folder, 'shop.tar')
    await writeFile(file, layoutTar(imageLayout(['kept'], 'registry.example/shop/app:1.5.0')))
    const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
    let held = 0
    await page.route('**/blobs/sha256:*', async (route) => {
      held += 1
      await released
      await route.continue()
    })
    await page.goto(`${address()}/#/content`)
    await page.locator('input[accept^=".tar"]').setInputFiles(file)
    await expect.poll(() => held).toBe(1)
    for (let minutes = 0; minutes < 42; minutes += 14) {
      await turn(tab, 14 * minuteMs)
      // The clocks of the pages strike.
      await page.clock.runFor(2_000)
      for (const each of [page, other.page]) {
        expect(await ended(each).count()).toBe(0)
        expect(await warning(each).count()).toBe(0)
      }
    }
    release(undefined)
    await page.getByText('Published ·').waitFor()
    await turn(tab, 20 * minuteMs)
    await page.clock.runFor(2_000)
    for (const each of [tab, other]) await isUsable(each)
    await turn(tab, 9 * minuteMs)
    await warning(page).waitFor()
  })

  it('a tab that is used without a pause keeps the session for the others', async () => {
    const tab = await enter('alice', { isTurned: true })
    const other = await openTab(tab)
    await heading(other.page).waitFor()
    // Each 14 s: there is never a longer pause.
    await tab.page.evaluate("setInterval(() => dispatchEvent(new KeyboardEvent('keydown')), 14_000)")
    for (let minutes = 0; minutes < 32; minutes += 8) {
      edge().clock.turn(8 * minuteMs)
      await tab.context.clock.runFor(8 * minuteMs)
      expect(await ended(other.page).count()).toBe(0)
      expect(await warning(other.page).count()).toBe(0)
    }
    await isUsable(other)
  })

  it('two tabs that renew at the same moment make one request, and both go on', async () => {
    const tab = await enter('alice', { isTurned: true })
    const other = await openTab(tab)
    await heading(other.page).waitFor()
    const renewals = bodiesOf(tab.context, renewalPath)
    for (const round of [1, 2, 3]) {
      await turn(tab, 11 * minuteMs)
      await tab.page.keyboard.press('Shift')
      await expect.poll(() => renewals.length).toBeGreaterThanOrEqual(round)
      for (const each of [tab, other]) await isUsable(each)
    }
    expect(new Set(renewals).size).toBe(renewals.length)
  })

  it('a duplicated tab has the session of the first, whichever of the two renews it and goes on', async () => {
    const tab = await enter('alice', { isTurned: true })
    const { page, context } = tab
    const renewals = bodiesOf(context, renewalPath)
    // A page that a page opens begins with a copy of its storage, as a duplicated tab does.
    const [copy] = await Promise.all([
      context.waitForEvent('page'),
      page.evaluate('void open(location.href)'),
    ])
    await heading(copy).waitFor()
    const tokens = () =>
      Promise.all([page, copy].map((each) => each.evaluate<string>("sessionStorage.getItem('refreshToken')")))
    expect(new Set(await tokens()).size).toBe(1)
    const [before = ''] = await tokens()
    await turn(tab, 11 * minuteMs)
    await expect.poll(async () => new Set([before, ...(await tokens())]).size).toBe(2)
    // An old token would end the session from now on.
    await turn(tab, minuteMs)
    await Promise.all([page.reload(), copy.reload()])
    await Promise.all([heading(page).waitFor(), heading(copy).waitFor()])
    await page.close()
    await turn(tab, minuteMs)
    await copy.reload()
    await heading(copy).waitFor()
    expect(await copy.getByLabel('User name').count()).toBe(0)
    expect(new Set(renewals).size).toBe(renewals.length)
  })

  it('eight tabs at once share a session, its renewals and the connections to the host', async () => {
    const tab = await enter('alice', { isTurned: true })
    const { context } = tab
    const renewals = bodiesOf(context, renewalPath)
    // This browser shows all of its tabs; those of a user are hidden but one.
    await context.addInitScript("Object.defineProperty(Document.prototype, 'hidden', { get: () => true })")
    const others = []
    for (let number = 2; number <= 8; number += 1) others.push(await openTab(tab))
    for (const { page } of others) await heading(page).waitFor()
    expect(renewals).toEqual([])
    await turn(tab, 11 * minuteMs)
    await expect.poll(() => renewals.length).toBeGreaterThan(0)
    for (const each of [tab, ...others]) await isUsable(each)
    // A browser that was closed opens them all again, and none has a token but in its storage.
    await Promise.all([tab, ...others].map(({ page }) => page.reload()))
    for (const { page } of [tab, ...others]) await heading(page).getByText('Content').waitFor()
    // An old token would end the session from now on.
    await turn(tab, minuteMs)
    for (const each of [tab, ...others]) await isUsable(each)
    expect(new Set(renewals).size).toBe(renewals.length)
  })

  it.each([-2, 2])(
    'a clock of the browser that is off by %i hours ends no session and bends no duration',
    async (hours) => {
      const tab = await enter('alice', { isTurned: true, aheadMs: hours * hourMs })
      const { page, context } = tab
      const renewals = bodiesOf(context, renewalPath)
      // A reply takes its time, and says the time in whole seconds.
      const off = new RegExp(`The clock of the host is (2 h|1 h 59 min) ${hours < 0 ? 'ahead' : 'behind'}`)
      await page.getByText(off).waitFor()
      await page.goto(`${address()}/#/cluster`)
      // Of the step that runs, or of its next try; by the clock of the browser it would be hours.
      const duration = page.locator('.note').getByText(/(^for|tried again in) (\d+ min ?)?(\d+ s)?$/)
      await duration.waitFor()
      await page.clock.runFor(3_000)
      await duration.waitFor()
      await isUsable(tab)
      expect(renewals).toEqual([])
      expect(await warning(page).count()).toBe(0)
      expect(tab.complaints()).toEqual([])
    },
  )
})
