import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { enterWith, launchBrowserBeside, openPage } from '../../support/browser.ts'
import { hasKit, isKitMissing, kit } from '../../support/kubernetes-kit.ts'
import { bootEdgehostd, type Edgehostd } from '../host/edgehostd.ts'
import { clusterGround, clusterWire } from '../host/ground.ts'
import { chief, password, plantSettings } from './cluster-host.ts'
import { writeContent, writeDefinition } from './plant-files.ts'

const minutes = 60_000
const address = `https://${clusterWire.host.ipv4}:5080`
interface KubernetesNode {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> }
  readonly spec: { readonly taints?: readonly unknown[] }
}
/** A value of a sensitive variable. */
const secret = 'typed-in-a-browser-0412'

describe.skipIf(isKitMissing())('a cluster by a browser alone', { timeout: 15 * minutes }, () => {
  let host: Edgehostd
  let browser: Browser
  let page: Page
  let complaints: () => string[]
  const valueOf = (name: string) =>
    page.locator('label.field', { hasText: new RegExp(name, 'i') }).locator('input')
  beforeAll(async () => {
    if (!hasKit) return
    host = await bootEdgehostd({ lower: 'machine', ground: clusterGround })
    await host.addUser({ name: chief, password, groups: ['sudo'] })
    await host.configure('plant', plantSettings)
    browser = await launchBrowserBeside(host.clientNamespace(), host.folder)
    const opened = await openPage(browser)
    ;({ page, complaints } = opened)
    await page.goto(address)
    await enterWith(page, chief, password)
  }, 5 * minutes)
  afterAll(async () => {
    await browser.close()
    await host.unplug()
  })

  it('its content is uploaded', async () => {
    const found = (await kit('1.34.4'))!
    const file = join(host.folder, 'content.tar')
    await writeContent(found, file)
    await page.goto(`${address}/#/content`)
    await page.locator('input[accept^=".tar"]').setInputFiles(file)
    await page.getByText('Published ·').waitFor({ timeout: 5 * minutes })
  })

  it('its definition is uploaded, gets its values, and is checked', async () => {
    const found = (await kit('1.34.4'))!
    const file = join(host.folder, 'definition.tgz')
    await writeDefinition(found, file)
    await page.goto(`${address}/#/cluster`)
    await page.getByRole('link', { name: 'Create a cluster' }).click()
    await page.getByLabel('Definition, .tgz or .tar.zst').setInputFiles(file)
    await page.getByRole('button', { name: 'Upload' }).click()
    await page.getByLabel('Name of the cluster').fill('line-7')
    await page.getByText('Node, time and SSH keys').click()
    await page.getByLabel('Name of the pool').fill('presses')
    await page.getByLabel('Labels of the node').fill('plant.example/hall=4\nplant.example/line=7')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText('variable token is required').waitFor({ timeout: 2 * minutes })
    await valueOf('greeting').fill('good morning')
    await valueOf('token').fill(secret)
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText('The cluster can be created.').waitFor({ timeout: 2 * minutes })
  })

  it('it is created, and watched until it runs', async () => {
    await page.getByRole('button', { name: 'Create the cluster' }).click()
    await page.getByRole('heading', { level: 1, name: 'line-7' }).waitFor()
    await page.locator('.badge', { hasText: 'Running' }).waitFor({ timeout: 10 * minutes })
    await page.getByRole('link', { name: 'Applications' }).click()
    await page.getByText('available', { exact: true }).first().waitFor()
    expect(await page.content()).not.toContain(secret)
  })

  it('a value is changed: its difference is shown, and the change is applied', async () => {
    await page.goto(`${address}/#/cluster/change`)
    await valueOf('greeting').fill('good evening')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.locator('ins', { hasText: 'good evening' }).waitFor({ timeout: 2 * minutes })
    await page.getByRole('button', { name: 'Apply the change' }).click()
    await page.getByRole('heading', { level: 1, name: 'line-7' }).waitFor()
    await page.goto(`${address}/#/cluster/revisions`)
    const second = page.getByRole('row', { name: /^2/ })
    await second.getByText('good', { exact: true }).waitFor({ timeout: 5 * minutes })
  })

  it('labels and taints of its node are changed', async () => {
    await page.goto(`${address}/#/cluster/access`)
    const labels = page.getByLabel('Labels of the node')
    await expect.poll(() => labels.inputValue()).toBe('plant.example/hall=4\nplant.example/line=7')
    await labels.fill('plant.example/hall=5')
    const taints = page.getByLabel('Taints of the node')
    await taints.fill('plant.example/quiet')
    const form = page.locator('form', { has: labels })
    await form.getByRole('button', { name: 'Check' }).click()
    await form.getByText('taints[0].effect').waitFor({ timeout: minutes })
    await taints.fill('plant.example/quiet=yes:PreferNoSchedule')
    await form.getByRole('button', { name: 'Check' }).click()
    await form.locator('dd', { hasText: 'labels, taints' }).waitFor({ timeout: 2 * minutes })
    await form.getByRole('button', { name: 'Apply the change' }).click()
    await form.getByText('Accepted; the host applies it.').waitFor({ timeout: minutes })
    const node = async () => {
      const { stdout } = await host.run('edgehostctl cluster kubectl -- get nodes -o json'.split(' '))
      const [found] = (JSON.parse(stdout) as { items: KubernetesNode[] }).items
      const plant = Object.entries(found?.metadata.labels ?? {}).filter(([key]) => key.startsWith('plant.'))
      return { labels: Object.fromEntries(plant), taints: found?.spec.taints }
    }
    await expect.poll(node, { timeout: 5 * minutes }).toEqual({
      labels: { 'plant.example/hall': '5' },
      taints: [{ key: 'plant.example/quiet', value: 'yes', effect: 'PreferNoSchedule' }],
    })
  })

  it('its kubeconfig and a support archive are saved as files', async () => {
    await page.goto(`${address}/#/cluster/access`)
    const kubeconfig = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    expect((await kubeconfig).suggestedFilename()).toContain('kubeconfig')
    await page.goto(`${address}/#/system/diagnosis`)
    await page.getByRole('button', { name: 'Make one' }).click()
    const save = page.getByRole('button', { name: 'Download', exact: true })
    await save.waitFor({ timeout: 5 * minutes })
    const archive = page.waitForEvent('download')
    await save.click()
    const saved = await archive
    expect(await saved.failure()).toBeNull()
    expect(saved.suggestedFilename()).toMatch(/^edgehostd-support-/)
  })

  it('it is deleted by the keyboard, after its name was typed', async () => {
    await page.goto(`${address}/#/cluster`)
    await page.getByRole('button', { name: /Delete the cluster/ }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Delete the cluster' })
    await dialog.getByLabel('Type line-7 to confirm').focus()
    await page.keyboard.type('line-7')
    await page.keyboard.press('Enter')
    await page.getByText('No cluster on this host').waitFor({ timeout: 10 * minutes })
    // A taint without an effect was refused, and what was asked for at the moment of the deletion was not there any more.
    expect(complaints().filter((each) => !/status of 40[04]/.test(each))).toEqual([])
  })
})
