import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Event } from '../../src/cluster/events/schemas.ts'
import { createEventStore } from '../../src/cluster/events/event-log.ts'
import type { ClusterDetails } from '../../src/cluster/schemas.ts'
import type { HostImage } from '../../src/images/schemas.ts'
import { allRead, hasBrowser, sidewaysScroll } from '../support/browser.ts'
import { contentClient, imageLayout, layoutTar } from '../support/content-uploads.ts'
import { useHostPages } from '../support/host-pages.ts'
import { addImage } from '../support/layout-files.ts'
import { createLayout } from '../support/layouts.ts'
import { plantCluster } from '../support/planted-cluster.ts'
import type { TestEdge } from '../support/test-edge.ts'

const eventsPath = '/v1/edge-mgmt/cluster/events'
const imagesPath = '/v1/edge-mgmt/content/images'
const detailsPath = '/v1/edge-mgmt/cluster/details'
const applicationsPath = '/v1/edge-mgmt/cluster/applications'
const clusterUid = '0199d7a0-0000-7000-8000-000000000001'

interface List<Item> {
  readonly items: readonly Item[]
  readonly listmeta: { readonly count: number }
}

/** Each two hundredth is a warning; the newest 500 have two of 25. */
function plantEvents({ database, clock }: TestEdge, count: number): void {
  const store = createEventStore(database)
  database.transaction(() => {
    for (let number = 1; number <= count; number += 1)
      store.put({
        at: clock.now() - (count - number + 60) * 1_000,
        clusterUid,
        reason: number % 200 === 1 ? 'StepFailed' : 'StepDone',
        severity: number % 200 === 1 ? 'Warning' : 'Normal',
        message: `event ${number}`,
      })
  })
}

/** Has the page get other replies of a path, made of what the daemon replies; for what no cluster of this machine has. */
const amend = <Body>(page: Page, path: string, change: (body: Body) => Body) =>
  page.route(
    ({ pathname }) => pathname === path,
    async (route) => {
      const response = await route.fetch()
      if (response.status() === 200)
        await route.fulfill({ response, json: change((await response.json()) as Body) })
      else await route.fulfill({ response })
    },
  )

// Would be markup, a line from right to left, and a bell.
const hostile = '<img src=x onerror=alert(1)><b>name</b>\u202egnp.exe\u0007'
const shownHostile = '<img src=x onerror=alert(1)><b>name</b>\\u{202e}gnp.exe\\u{7}'

/** Paths with queries that the page asks for from now on. */
function requestsOf(page: Page): string[] {
  const asked: string[] = []
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url())
    asked.push(pathname + search)
  })
  return asked
}

describe.skipIf(!hasBrowser)('long lists and hostile texts on the pages of a host', () => {
  const { start, edge, address, enter } = useHostPages()
  beforeAll(async () => {
    await start({ prepare: plantCluster })
    plantEvents(edge(), 5_000)
    const layout = createLayout()
    for (let number = 1; number <= 500; number += 1)
      layout.list(addImage(layout, { layers: [`layer ${number}`] }), {
        'org.opencontainers.image.ref.name': `registry.example/shop/app-${String(number).padStart(3, '0')}:1.0`,
      })
    const { access } = await edge().login('alice')
    expect((await contentClient(edge(), access).upload(layout)).statusCode).toBe(201)
  })

  async function read<Body>(path: string): Promise<Body> {
    const { access } = await edge().login('alice')
    return (await edge().get(path, access)).json<Body>()
  }

  it('5,000 events: the newest are drawn; their pages, their number and those with problems are of the host', async () => {
    const { page, complaints } = await enter()
    const lines = page.locator('ol.events li')
    await page.goto(`${address()}/#/cluster`)
    await expect.poll(() => lines.count()).toBe(50)
    // The daemon tries to make this cluster, so its events become more meanwhile.
    const counted = async (query = '') => (await read<List<Event>>(`${eventsPath}${query}`)).listmeta.count
    const shownCount = async () =>
      Number(/ of (\d+)$/.exec((await page.getByText(/^\d+ to \d+ of \d+$/).textContent()) ?? '')?.[1])
    const planted = async () =>
      (await lines.locator('> span:last-child').allTextContents()).flatMap((message) =>
        message.startsWith('event ') ? [Number(message.slice('event '.length))] : [],
      )
    const before = await counted()
    expect(before).toBeGreaterThanOrEqual(5_000)
    await page.getByLabel('Earlier ones').check()
    await page.getByText('1 to 50 of').waitFor()
    expect(await shownCount()).toBeGreaterThanOrEqual(before)
    expect(await shownCount()).toBeLessThanOrEqual(await counted())
    const asked = requestsOf(page)
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText('51 to 100 of').waitFor()
    const [newest = 0, ...others] = await planted()
    expect(others).toEqual(Array.from({ length: 49 }, (_, index) => newest - 1 - index))
    expect(asked.filter((path) => path.startsWith(eventsPath))).toHaveLength(1)

    const filters = `?filters=${encodeURIComponent('severity="Warning" OR severity="Error"')}`
    const problems = await counted(filters)
    await page.getByLabel('Problems only').check()
    await expect.poll(planted).toEqual(Array.from({ length: 25 }, (_, index) => 4_801 - index * 200))
    expect(await shownCount()).toBeGreaterThanOrEqual(problems)
    expect(await shownCount()).toBeLessThanOrEqual(await counted(filters))
    expect(complaints()).toEqual([])
  })

  it('500 images: pages and their number are those of the host, and only the shown page is read again', async () => {
    const { page, complaints } = await enter('alice', { isTurned: true })
    await page.goto(`${address()}/#/content`)
    const rows = page.getByRole('region', { name: 'Images on this host' }).locator('tbody tr')
    await page.getByText('1 to 50 of 500').waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText('51 to 100 of 500').waitFor()
    const { items } = await read<List<HostImage>>(`${imagesPath}?offset=50`)
    expect(await rows.getByRole('rowheader').allTextContents()).toEqual(items.map(({ title }) => title))
    const asked = requestsOf(page)
    await page.clock.runFor(61_000)
    await expect.poll(() => asked.filter((path) => path.startsWith(imagesPath)).length).toBeGreaterThan(0)
    expect(asked).not.toContain(imagesPath)
    expect(await rows.count()).toBe(50)
    await page.getByRole('button', { name: 'Previous' }).click()
    await page.getByText('1 to 50 of 500').waitFor()
    expect(complaints()).toEqual([])
  })

  it('200 nodes are drawn by pages', async () => {
    const { page, complaints } = await enter()
    await amend<ClusterDetails>(page, detailsPath, (body) => ({
      ...body,
      status: {
        ...body.status,
        nodePools: body.status.nodePools.map((pool) => ({
          ...pool,
          nodes: pool.nodes.flatMap((node) =>
            Array.from({ length: 200 }, (_, index) => ({ ...node, nodeName: `node-${index + 1}` })),
          ),
        })),
      },
    }))
    await page.goto(`${address()}/#/cluster`)
    const nodes = page.getByRole('region', { name: 'Nodes' }).getByRole('rowheader')
    await page.getByText('1 to 50 of 200').waitFor()
    expect(await nodes.count()).toBe(50)
    for (const shown of ['51 to 100', '101 to 150', '151 to 200']) {
      await page.getByRole('button', { name: 'Next' }).click()
      await page.getByText(`${shown} of 200`).waitFor()
    }
    expect(await nodes.last().textContent()).toBe('node-200')
    expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true)
    expect(complaints()).toEqual([])
  })

  it('hostile names of clusters, packs, variables, files and events stay text, with their control characters shown', async () => {
    const { page, complaints } = await enter()
    const isText = async (title: string) => {
      await page.getByText(title).first().waitFor({ timeout: 15_000 })
      const text = await page.locator('main').innerText()
      expect(text).not.toContain('\u0007')
      expect(text).not.toContain('\u202e')
      expect(await page.locator('main img[src=x], main b:text-is("name")').count()).toBe(0)
      expect(await sidewaysScroll(page)).toBe(0)
    }
    createEventStore(edge().database).put({
      ...{ at: edge().clock.now(), clusterUid, reason: 'StepFailed', severity: 'Warning' },
      message: `event ${hostile}`,
    })
    await amend<ClusterDetails>(page, detailsPath, (body) => ({
      ...body,
      metadata: { ...body.metadata, name: `cluster ${hostile}` },
    }))
    await amend<object>(page, applicationsPath, () => ({
      clusterProfileTemplates: [
        {
          ...{ uid: 'p1', name: `profile ${hostile}`, type: 'cluster', version: '1.0.0' },
          description: `description ${hostile}`,
          packs: [
            {
              ...{ name: 'web', displayName: `pack ${hostile}`, version: '1.0.0', layer: 'addon' },
              ...{ type: 'spectro', values: `values ${hostile}`, logo: '', status: 'Failed', contents: [] },
              conditions: [{ message: `condition ${hostile}` }],
            },
          ],
          variables: [{ name: 'replicas', displayName: `variable ${hostile}`, value: `value ${hostile}` }],
        },
      ],
    }))
    await page.goto(`${address()}/#/cluster`)
    await page.getByLabel('Problems only').check()
    await isText(`cluster ${shownHostile}`)
    await isText(`event ${shownHostile}`)
    await page.goto(`${address()}/#/cluster/applications`)
    await isText(`profile ${shownHostile}`)
    await page.evaluate("document.querySelectorAll('main details').forEach((each) => (each.open = true))")
    for (const kind of ['description', 'pack', 'values', 'condition', 'variable', 'value'])
      await isText(`${kind} ${shownHostile}`)

    await page.goto(`${address()}/#/content`)
    await allRead(page)
    const name = 'shop <b>name \u202egnp'
    await page.locator('input[accept^=".tar"]').setInputFiles({
      name: `${name}.tar`,
      mimeType: 'application/x-tar',
      buffer: layoutTar(imageLayout(['hostile'], 'registry.example/shop/hostile:1')),
    })
    await page.getByText('Published ·').waitFor()
    await isText('shop <b>name \\u{202e}gnp.tar')
    expect(complaints()).toEqual([])
  })
})
