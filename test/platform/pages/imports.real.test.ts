import { readFile } from 'node:fs/promises'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { accessibilityProblems, hasBrowser, sidewaysScroll } from '../../support/browser.ts'
import { usePlatformPages } from '../../support/platform-pages.ts'
import { smallPack, smallProfile, tarOf } from '../../support/platform-packs.ts'

const [archive, packFile] = ['application/x-tar', 'input[type="file"]'] as const
const choose = (page: Page, name: string, buffer: Buffer, mimeType: string = archive) =>
  page.locator(packFile).setInputFiles({ name, mimeType, buffer })
const importButton = (page: Page) => page.getByRole('button', { name: 'Import', exact: true })
const focused = (page: Page) => page.evaluate<string>('document.activeElement.textContent')

describe.skipIf(!hasBrowser)('imports on the pages of the platform', () => {
  const { start, enter, platform, fleet, address, inProject } = usePlatformPages()
  beforeAll(() => start())

  /** The JSON of a GET as the administrator. */
  const read = <Body>(url: string) => fleet().ask('GET', url) as Promise<Body>
  const packsNamed = async (name: string) => {
    const { items } = await read<{ items: { spec: { version: string } }[] }>(
      `/v1/packs?ProjectUid=${fleet().project}&filters=spec.name=${name}`,
    )
    return items.map(({ spec }) => spec.version)
  }

  it.each(['desktop', 'phone'] as const)(
    'a pack is chosen, looked at, sent and taken, and has a page of its own: %s',
    async (viewport) => {
      const { page, complaints } = await enter('admin', { viewport })
      await page.goto(inProject('packs'))
      await page.getByRole('rowheader', { name: 'edge-k8s' }).waitFor()
      const name = `shop-${viewport}`
      const files = smallPack(name, '2.1.0', { 'README.md': '# <b>Shop</b>\n', 'manifests/a.yaml': 'a: 1\n' })
      // Below one folder, and compressed, as registries have it.
      await choose(page, `${name}.tar.gz`, gzipSync(tarOf(files, name)), 'application/gzip')
      await page.getByText('The platform examines it whole').waitFor()
      for (const shown of [`The ${name}`, '2.1.0', 'addon'])
        expect(await page.getByRole('definition').getByText(shown, { exact: true }).count()).toBe(1)
      expect(await packsNamed(name)).toEqual([])
      expect(await accessibilityProblems(page)).toEqual([])
      expect(await sidewaysScroll(page)).toBe(0)
      await page.getByText(`pack upload ${name}.tar.gz --project 'north hall'`).waitFor()
      await importButton(page).focus()
      await page.keyboard.press('Enter')
      const taken = page.getByRole('link', { name: `${name} 2.1.0` })
      await taken.waitFor()
      await page.getByRole('rowheader', { name }).waitFor()
      expect(await packsNamed(name)).toEqual(['2.1.0'])
      expect(await accessibilityProblems(page)).toEqual([])
      await taken.focus()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: `${name} 2.1.0` }).waitFor()
      await expect.poll(() => focused(page)).toBe(`${name} 2.1.0`)
      await page.getByText('Description', { exact: true }).click()
      await page.getByText('# <b>Shop</b>').waitFor()
      await page.getByText('a.yaml').waitFor()
      expect(await accessibilityProblems(page)).toEqual([])
      expect(await sidewaysScroll(page)).toBe(0)
      expect(complaints()).toEqual([])
    },
  )

  it('a file that is no pack, or is there already, is said before anything is sent', async () => {
    const { page } = await enter()
    const sent: string[] = []
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().includes('/v1/packs')) sent.push(request.url())
    })
    await page.goto(inProject('packs'))
    for (const [name, content, reason] of [
      ['notes.tar', Buffer.from('these are notes'.repeat(100)), 'This is not an archive of a pack'],
      ['cut.tar.gz', gzipSync(tarOf(smallPack())).subarray(0, 80), 'This is not an archive of a pack'],
      ['other.tar', tarOf({ 'values.yaml': 'a: 1\n' }), 'has no pack.json'],
      ['json.tar', tarOf({ 'pack.json': '{ name: web }' }), 'This is not JSON'],
      ['nameless.tar', tarOf({ 'pack.json': '{"name":"web"}' }), 'It names no name, or no version.'],
      ['web.tar', tarOf(smallPack()), 'This version is here already.'],
    ] as const) {
      await choose(page, name, content)
      await page.getByRole('heading', { name }).waitFor()
      await page.getByRole('alert').getByText(reason).waitFor()
      expect([name, await importButton(page).isDisabled()]).toEqual([name, true])
    }
    expect(await accessibilityProblems(page)).toEqual([])
    // What a desktop adds is none of the pack.
    const ofDesktop = { '__MACOSX/pack.json': 'x', '._pack.json': 'x', '.git/pack.json': 'x' }
    await choose(page, 'desktop.tar', tarOf({ ...ofDesktop, ...smallPack('desktop') }))
    await page.getByText('The platform examines it whole').waitFor()
    await page.getByRole('definition').getByText('2', { exact: true }).waitFor()
    expect(sent).toEqual([])
  })

  it('a pack that the platform refuses is not taken, and the page lists every problem', async () => {
    const { page } = await enter()
    await page.goto(inProject('packs'))
    const described = {
      ...{ name: 'broken', version: '1.0.0', layer: 'addon', displayName: 'Broken' },
      kubeManifests: ['manifests/<b>one.yaml', 'manifests/two.yaml'],
    }
    await choose(page, 'broken.tar', tarOf({ 'pack.json': JSON.stringify(described) }))
    await importButton(page).click()
    await page.getByText('It was refused').waitFor()
    for (const missing of ['manifests/<b>one.yaml', 'manifests/two.yaml'])
      await page.getByRole('listitem').getByText(`names ${missing}, which is not in the folder`).waitFor()
    expect(await accessibilityProblems(page)).toEqual([])
    expect(await packsNamed('broken')).toEqual([])
    // It stays on other pages until it is closed.
    await page.goto(inProject('hosts'))
    await page.getByText('It was refused').waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await expect.poll(() => focused(page)).toBe('Hosts')
  })

  it('an import that is ended leaves nothing, and one that cannot be looked into is taken all the same', async () => {
    const { page } = await enter()
    await page.goto(inProject('packs'))
    const held = Promise.withResolvers<unknown>()
    await page.route('**/v1/packs?ProjectUid=*', async (route) => {
      if (route.request().method() !== 'POST') return route.continue()
      await held.promise
      return route.continue().catch(() => undefined)
    })
    await choose(page, 'slow.tar', tarOf(smallPack('slow')))
    await importButton(page).click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await expect.poll(() => focused(page)).toBe('Packs')
    held.resolve(undefined)
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByText('Choose a file, or drop it here').waitFor()
    expect(await packsNamed('slow')).toEqual([])
    // Zstandard, which browsers do not unpack; what it is, is known when the platform has it.
    await choose(page, 'unknown.tar.zst', zstdCompressSync(tarOf(smallPack('zipped', '3.0.0'))))
    await page.getByText('A browser cannot look into this file.').waitFor()
    await importButton(page).click()
    await page.getByRole('link', { name: 'zipped 3.0.0' }).waitFor()
    expect(await packsNamed('zipped')).toEqual(['3.0.0'])
  })

  it('a profile is imported as JSON and as YAML, published, exported as it was, and refused twice', async () => {
    const { page, complaints } = await enter()
    await page.goto(inProject('profiles'))
    await page.getByRole('rowheader', { name: 'plant' }).first().waitFor()
    await choose(page, 'shop.json', Buffer.from(JSON.stringify(smallProfile())), 'application/json')
    await page.getByRole('definition').getByText('web 1.0.0').waitFor()
    await page.getByLabel('Publish it').check()
    expect(await accessibilityProblems(page)).toEqual([])
    await page.getByText(`profile import shop.json --publish --project 'north hall'`).waitFor()
    await importButton(page).click()
    await page.getByRole('link', { name: 'shop 1.0.0' }).click()
    await page.getByRole('heading', { level: 1, name: 'shop 1.0.0' }).waitFor()
    await page.getByText('Published').waitFor()
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const download = await saving
    expect(download.suggestedFilename()).toBe('shop-1.0.0.json')
    const { spec } = JSON.parse(await readFile(await download.path(), 'utf8')) as { spec: unknown }
    expect(spec).toEqual(smallProfile().spec)
    expect(complaints()).toEqual([])

    await page.goto(inProject('profiles'))
    await page.getByLabel('Publish it').waitFor({ state: 'detached' })
    await choose(page, 'again.json', Buffer.from(JSON.stringify(smallProfile())), 'application/json')
    await page.getByRole('alert').getByText('This version is here already.').waitFor()
    await choose(page, 'bad.json', Buffer.from('{"metadata":'), 'application/json')
    await page.getByRole('alert').getByText('This is not JSON').waitFor()
    const yaml = `metadata: {name: bread}\nspec: {version: 1.0.0, template: {type: add-on, packs: [`
    await choose(page, 'bread.yaml', Buffer.from(yaml), 'application/yaml')
    await importButton(page).click()
    await page.getByRole('alert').getByText('is not valid YAML').waitFor()
    await choose(page, 'bread.yaml', Buffer.from(`${yaml}{name: web, tag: 1.0.0}]}}\n`), 'application/yaml')
    await importButton(page).click()
    await page.getByRole('link', { name: 'bread 1.0.0' }).waitFor()
  })

  it('a viewer is told who may import and export, and has no way to', async () => {
    const { page } = await enter('viewer')
    for (const name of ['packs', 'profiles']) {
      await page.goto(inProject(name))
      await page.getByText('Only operators and administrators can do this.').waitFor()
      expect([name, await page.locator(packFile).count()]).toEqual([name, 0])
    }
    await page.goto(inProject(`profiles/${fleet().profile}`))
    const button = page.getByRole('button', { name: 'Export' })
    await button.waitFor()
    expect(await button.isDisabled()).toBe(true)
  })

  it('a pack that a profile uses is not deleted, and the page says why; another one is', async () => {
    const { page } = await enter()
    await page.goto(inProject('packs'))
    const link = page.getByRole('rowheader').getByRole('link', { name: 'web', exact: true })
    await link.click()
    await page.getByRole('button', { name: 'Delete the pack…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Delete the pack' })
    await dialog.getByLabel('Type web to confirm').fill('web')
    await dialog.getByRole('button', { name: 'Delete the pack' }).click()
    await dialog.getByText(/web 1\.0\.0 is used by .*the cluster profile plant 1\.0\.0/).waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect(await packsNamed('web')).toEqual(['1.0.0'])
    // One of the tenant, which the project lists apart.
    await page.goto(`${address()}/#/packs`)
    await page.getByText('No packs here').waitFor()
    await choose(page, 'spare.tar', tarOf(smallPack('spare')))
    await importButton(page).click()
    await page.getByRole('link', { name: 'spare 1.0.0' }).click()
    await page.goto(inProject('packs'))
    await page.getByRole('combobox', { name: 'Packs' }).selectOption('tenant')
    await page.getByRole('rowheader').getByRole('link', { name: 'spare' }).click()
    await expect.poll(() => page.url()).toMatch(/#\/packs\/[0-9a-f-]+$/)
    await page.getByRole('button', { name: 'Delete the pack…' }).click()
    await dialog.getByLabel('Type spare to confirm').fill('spare')
    await dialog.getByRole('button', { name: 'Delete the pack' }).click()
    await page.getByText('No packs here').waitFor()
    const { items } = await read<{ items: unknown[] }>('/v1/packs')
    expect(items).toEqual([])
    expect(platform().lines.filter(({ level }) => level === 'error')).toEqual([])
  })
})
