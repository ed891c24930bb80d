import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ConsoleProgram } from '../../build/console.ts'
import {
  accessibilityProblems,
  allRead,
  buildPages,
  launchBrowser,
  openPage,
  sidewaysScroll,
  viewports,
} from './browser.ts'

/** A program whose pages are shown. */
export interface ShownProgram {
  readonly address: string
  /** Behind `#/`. */
  readonly names: readonly string[]
  enter(page: Page): Promise<void>
  stop(): Promise<void>
}

const sizes = Object.keys(viewports) as (keyof typeof viewports)[]
const looks = sizes.flatMap((viewport) =>
  (['light', 'dark'] as const).flatMap((scheme) =>
    (['en-GB', 'de-DE'] as const).map((locale) => ({ viewport, scheme, locale })),
  ),
)

const screens = join(import.meta.dirname, '../../dist/screens')

/**
 * Each page of a program in each look: examined, and written to `dist/screens/PROGRAM` for people to look at.
 * @param states what there is to show, by name
 * @param start with the folder of the built pages
 */
export function showPages<State extends string>(
  program: ConsoleProgram,
  states: readonly State[],
  start: (state: State, pagesFolder: string) => Promise<ShownProgram>,
): void {
  const folder = join(screens, program)
  let browser: Browser
  let built: Awaited<ReturnType<typeof buildPages>>
  beforeAll(async () => {
    await mkdir(folder, { recursive: true })
    built = await buildPages(program)
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await built.remove()
  })

  describe.each(states)('pages with %s', (state) => {
    let shown: ShownProgram
    beforeAll(async () => {
      shown = await start(state, built.folder)
    })
    afterAll(() => shown.stop())

    async function show(page: Page, name: string): Promise<void> {
      await page.goto(`${shown.address}/#/${name}`)
      await allRead(page)
    }

    it.each(looks)('are whole: $viewport, $scheme, $locale', async (look) => {
      const { page, context, complaints } = await openPage(browser, look)
      await page.goto(shown.address)
      await shown.enter(page)
      for (const name of shown.names) {
        await show(page, name)
        expect([name, await accessibilityProblems(page)]).toEqual([name, []])
        expect([name, await sidewaysScroll(page)]).toEqual([name, 0])
        const place = name.replace(/^projects\/[^/]+\//, '').replaceAll(/[0-9a-f-]{24,36}/g, 'one')
        const file = [
          place.replaceAll('/', '-') || 'overview',
          state,
          look.viewport,
          look.scheme,
          look.locale.slice(0, 2),
        ].join('-')
        await page.screenshot({ path: join(folder, `${file}.png`), fullPage: true })
      }
      expect(complaints()).toEqual([])
      await context.close()
    })

    it('have no sideways scrolling at 320 pixels, and nothing moves for those who want none', async () => {
      const { page, context, complaints } = await openPage(browser)
      await page.setViewportSize({ width: 320, height: 640 })
      await page.emulateMedia({ reducedMotion: 'reduce', forcedColors: 'active' })
      await page.goto(shown.address)
      await shown.enter(page)
      for (const name of shown.names) {
        await show(page, name)
        expect([name, await sidewaysScroll(page)]).toEqual([name, 0])
        const moving = 'document.getAnimations().filter((each) => each.playState === "running").length'
        expect([name, await page.evaluate<number>(moving)]).toEqual([name, 0])
      }
      expect(complaints()).toEqual([])
      await context.close()
    })
  })
}
