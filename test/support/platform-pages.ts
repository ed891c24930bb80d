import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { buildPages, launchBrowser, logInWith, openPage, type WatchedPage } from './browser.ts'
import { listeningPort } from './https-server.ts'
import { fleetPassword, plantFleet, type PlantedFleet } from './planted-fleet.ts'
import { createTestPlatform } from './test-platform.ts'

type TestPlatform = Awaited<ReturnType<typeof createTestPlatform>>
type OpenOptions = Parameters<typeof openPage>[1]

/** Has a page read at once what it reads every few seconds, as when it is seen again. */
export const readAgain = (page: Page) =>
  page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

/** Logs in on the page as a user of the planted fleet. */
export const logInFleet = (page: Page, name: string, password = fleetPassword) =>
  logInWith(page, `${name}@plant.example`, password, 'E-mail address')

/**
 * The pages of a platform with a planted fleet in one browser for all tests of a file; its windows are closed after each. The platform is that of
 * the last `start`, and outlives its tests.
 */
export function usePlatformPages() {
  let pages: Awaited<ReturnType<typeof buildPages>>
  let browser: Awaited<ReturnType<typeof launchBrowser>>
  let running: { platform: TestPlatform; fleet: PlantedFleet; address: string } | undefined
  const current = () => {
    if (!running) throw new Error('no platform was started')
    return running
  }

  async function stop(): Promise<void> {
    await running?.platform.close()
    running = undefined
  }

  beforeAll(async () => {
    pages = await buildPages('platform')
    browser = await launchBrowser()
  })
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close()
  })
  afterAll(async () => {
    await browser.close()
    await stop()
    await pages.remove()
  })

  async function open(options: OpenOptions = {}): Promise<WatchedPage> {
    const opened = await openPage(browser, options)
    await opened.page.goto(current().address)
    return opened
  }

  return {
    platform: () => current().platform,
    fleet: () => current().fleet,
    address: () => current().address,
    /** The address of a page in the project of the fleet. */
    inProject: (path: string) => `${current().address}/#/projects/${current().fleet.project}/${path}`,
    /** A platform with a fleet, in the place of the one before. */
    async start(): Promise<void> {
      await stop()
      const platform = await createTestPlatform({ pagesFolder: pages.folder })
      const fleet = await plantFleet(platform)
      await platform.start()
      running = { platform, fleet, address: `https://127.0.0.1:${listeningPort(platform)}` }
    },
    open,
    /** A page that was not opened at its address yet. @param options by default another browser */
    openBlank: (options: OpenOptions = {}) => openPage(browser, options),
    /** Logs in by the page. */
    async enter(name = 'admin', options: OpenOptions = {}): Promise<WatchedPage> {
      const opened = await open(options)
      await logInFleet(opened.page, name)
      await opened.page.getByRole('navigation', { name: 'Pages' }).waitFor()
      return opened
    },
  }
}
