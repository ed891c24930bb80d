import { expect, it } from 'vitest'
import type { Context } from '../../../src/ctl/client.ts'
import type { Paper } from '../../../src/ctl/layout.ts'
import { showLink } from '../../../src/uplink/commands/show-link.ts'
import type { PlatformLink } from '../../../src/uplink/schemas.ts'
import { platformLink } from '../../support/link-example.ts'

/** What `platform status` writes, and how it ends. */
async function shown(link: PlatformLink) {
  let text = ''
  const end = await showLink({
    client: { get: async () => link },
    output: {
      show: async (_: unknown, render: (paper: Paper) => string) =>
        void (text = render({ columns: Infinity, isColoured: false })),
    },
  } as unknown as Context)
  return { text, end }
}

it('says what is wanted, its number and how far the download is', async () => {
  const { text, end } = await shown(platformLink)
  expect(text).toMatch(/Wanted: +cluster edge-1, number 4; accepted 3/)
  expect(text).toMatch(/Its state: +Downloading: number 4/)
  expect(text).toMatch(/Download: +104\D?857\D?600 of 524\D?288\D?000 bytes/)
  expect(end).toBe('failed')
})

it('says nothing of a cluster where none was ever wanted', async () => {
  const { mode, registrationStatus, events } = platformLink
  const { text, end } = await shown({ mode, registrationStatus, events, isConnected: true })
  expect(text).not.toContain('Wanted')
  expect(end).toBeUndefined()
})

it.each([
  [{ projectName: 'north' }, 'north'],
  [{}, platformLink.projectUid],
  [{ projectUid: '' }, 'none'],
])('names the project, by its uid before the first login: %j', async (project, named) => {
  const { text } = await shown({ ...platformLink, ...project })
  expect(text).toMatch(new RegExp(`Project: +${named}\n`))
})

it('says that nothing is wanted any more', async () => {
  const wanted = { acceptedNumber: 5, condition: { status: 'True', reason: 'Deleted', message: '' } } as const
  const { text } = await shown({ ...platformLink, wanted })
  expect(text).toMatch(/Wanted: +nothing any more; accepted 5\n/)
  expect(text).toMatch(/Its state: +Deleted\n/)
})
