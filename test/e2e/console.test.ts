import { readFile } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { enterWith, launchBrowserBeside, openPage } from '../support/browser.ts'
import { installPackage } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { bootNetworkHost, type NetworkHost } from './host/network-host.ts'
import './host/global-setup.ts'

const password = 'browser canary 0311'
const first = '192.0.2.10'
const second = '192.0.2.77'

describe('the network of a host in a browser', () => {
  let host: NetworkHost
  let browser: Browser
  beforeAll(async () => {
    host = await bootNetworkHost('networkd')
    await host.addUser({ name: 'chief', password, groups: ['sudo'] })
    await installPackage(host, await readFile(inject('deb')))
    browser = await launchBrowserBeside(host.clientNamespace(), host.folder)
  })
  afterAll(async () => {
    await browser.close()
    await host.unplug()
  })

  async function open(address: string): Promise<Page> {
    const { page } = await openPage(browser)
    await eventually(() => page.goto(`https://${address}:5080/#/network`))
    await enterWith(page, 'chief', password)
    return page
  }

  const rowOf = (page: Page) =>
    page.getByRole('region', { name: 'Links' }).getByRole('row', { name: /^host0/ })

  /** Gives host0 another address by the keyboard, and returns when the trial has begun. */
  async function giveAddress(page: Page, address: string): Promise<void> {
    await rowOf(page)
      .getByRole('button', { name: /Configure/ })
      .focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Configure host0' })
    await dialog.getByLabel('Address', { exact: true }).focus()
    await page.keyboard.press('Control+A')
    await page.keyboard.type(address)
    await page.keyboard.press('Enter')
    await dialog.getByText('Nothing speaks against this change.').waitFor()
    const request = page.waitForRequest((each) => each.method() === 'PUT' && each.url().includes('window='))
    await dialog.getByRole('button', { name: 'Try it for 5 minutes' }).focus()
    await page.keyboard.press('Enter')
    await request
  }

  it('a change of the address that is not kept is taken back, and the page says so', async () => {
    const page = await open(first)
    // A person gets five minutes; the test does not wait for them.
    await page.route(/window=300/, (route) =>
      route.continue({ url: route.request().url().replace('window=300', 'window=30') }),
    )
    await giveAddress(page, second)
    await page.getByRole('link', { name: `Open the host at ${second}` }).waitFor()
    await page.getByText('it was not kept in time').waitFor({ timeout: 120_000 })
    expect(await rowOf(page).textContent()).toContain(first)
    await page.close()
  })

  it('a change of the address is kept from the new address, behind a link without a token', async () => {
    const page = await open(first)
    await giveAddress(page, second)
    const link = page.getByRole('link', { name: `Open the host at ${second}` })
    await link.waitFor()
    expect(await link.getAttribute('href')).toMatch(
      new RegExp(`^https://${second.replaceAll('.', '\\.')}:5080/#/network/changes/[-0-9a-f]{36}$`),
    )
    await link.focus()
    await page.keyboard.press('Enter')
    await enterWith(page, 'chief', password)
    await page.getByRole('button', { name: 'Keep it' }).click()
    await page.getByText('Kept', { exact: true }).first().waitFor()
    expect(await host.output(['ip', '-4', 'address', 'show', 'host0'])).toContain(second)
    await page.close()
  })
})
