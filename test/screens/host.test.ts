import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  accessibilityProblems,
  buildPages,
  enterWith,
  launchBrowser,
  openPage,
  sidewaysScroll,
  viewports,
} from '../support/browser.ts'
import { hostBody } from '../support/host-body.ts'
import { plantCluster } from '../support/planted-cluster.ts'
import { playedInventory } from '../support/played-inventory.ts'
import { prepareProgram } from '../support/programs.ts'
import { createTestEdge, type TestEdge } from '../support/test-edge.ts'

// `make screens`: each page of a host in each look, examined and written to dist/screens/host, for people to look at.

const folder = join(import.meta.dirname, '../../dist/screens/host')

const emptyPages = ['', 'cluster', 'cluster/create', 'content']
const pages = [
  ...['', 'cluster', 'cluster/change', 'cluster/applications', 'cluster/revisions', 'cluster/access'],
  ...['network', 'access', 'audit', 'system', 'system/configuration', 'system/diagnosis', 'more'],
]

const sizes = Object.keys(viewports) as (keyof typeof viewports)[]
const looks = sizes.flatMap((viewport) =>
  (['light', 'dark'] as const).flatMap((scheme) =>
    (['en-GB', 'de-DE'] as const).map((locale) => ({ viewport, scheme, locale })),
  ),
)

let browser: Browser
let built: Awaited<ReturnType<typeof buildPages>>
beforeAll(async () => {
  await mkdir(folder, { recursive: true })
  built = await buildPages()
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser.close()
  await built.remove()
})

describe.each([
  { state: 'empty', names: emptyPages, prepare: () => undefined },
  { state: 'cluster', names: pages, prepare: (edge: TestEdge) => plantCluster(edge) },
])('a host with state $state', ({ state, names, prepare }) => {
  let edge: TestEdge
  let address: string
  beforeAll(async () => {
    edge = await createTestEdge({
      pagesFolder: built.folder,
      hostBody: await hostBody({ isClusterPhase: state === 'cluster' }),
      inventoryProgram: playedInventory().program,
      prepareProgram: prepareProgram(),
    })
    prepare(edge)
    await edge.daemon.start()
    address = `https://127.0.0.1:${Number(edge.lines.find(({ msg }) => msg === 'listening')?.port)}`
  })
  afterAll(() => edge.stop())

  it.each(looks)('has whole pages: $viewport, $scheme, $locale', async (look) => {
    const { page, context, complaints } = await openPage(browser, look)
    await page.goto(address)
    await enterWith(page, 'alice', 'alice pass')
    for (const name of names) {
      await page.goto(`${address}/#/${name}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await expect.poll(() => page.locator('.skeleton').count()).toBe(0)
      expect([name, await accessibilityProblems(page)]).toEqual([name, []])
      expect([name, await sidewaysScroll(page)]).toEqual([name, 0])
      const file = [
        name.replaceAll('/', '-') || 'overview',
        state,
        look.viewport,
        look.scheme,
        look.locale.slice(0, 2),
      ]
      await page.screenshot({ path: join(folder, `${file.join('-')}.png`), fullPage: true })
    }
    expect(complaints()).toEqual([])
    await context.close()
  })

  it('has no sideways scrolling at 320 pixels, and is whole without motion and with forced colours', async () => {
    const { page, context, complaints } = await openPage(browser)
    await page.setViewportSize({ width: 320, height: 640 })
    await page.emulateMedia({ reducedMotion: 'reduce', forcedColors: 'active' })
    await page.goto(address)
    await enterWith(page, 'alice', 'alice pass')
    for (const name of names) {
      await page.goto(`${address}/#/${name}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      expect([name, await sidewaysScroll(page)]).toEqual([name, 0])
      const moving = 'document.getAnimations().filter((each) => each.playState === "running").length'
      expect([name, await page.evaluate<number>(moving)]).toEqual([name, 0])
    }
    expect(complaints()).toEqual([])
    await context.close()
  })
})
