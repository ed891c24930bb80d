import { amount, moment, renderTable, type Column } from '../../ctl/layout.ts'
import type { Context } from '../../ctl/client.ts'
import { parseLimit, filterOf } from '../../ctl/list.ts'
import type { HostImage, ImageSource } from '../schemas.ts'

const path = '/v1/edge-mgmt/content/images'

const layout: readonly Column<HostImage>[] = [
  { title: 'IMAGE', read: namesOf, isFlexible: true },
  { title: 'PLATFORMS', read: platformsOf, isFlexible: true },
  { title: 'SIZE', read: ({ sizeBytes }) => (sizeBytes === 0 ? '' : amount(sizeBytes)) },
  { title: 'WHERE', read: placesOf, isFlexible: true },
  { title: 'HERE AGAIN', read: ({ canBePulledHere }) => (canBePulledHere ? 'yes' : 'no') },
  { title: 'DIGEST', read: ({ digest }) => digest.slice(0, 'sha256:'.length + 12) },
]

/** `edgehostctl content images`. */
export async function listImages(context: Context<'limit' | 'filter' | 'refresh'>): Promise<undefined> {
  const { client, line, output } = context
  const { refresh } = line.options
  const first = refresh === undefined ? '' : '&refresh=true'
  const { sources } = await client.get<{ sources: ImageSource[] }>(`${path}?limit=1${first}`, ['sources'])
  const found = await client.list<HostImage>(path, { ...filterOf(line) }, parseLimit(line, 0))
  await output.show({ ...found, sources }, ({ columns }) => renderTable(found.items, layout, columns))
  for (const { runtime, endpoint, message, readAt } of sources)
    if (message !== undefined)
      output.note(
        `${runtime}${endpoint === '' ? '' : ` (${endpoint})`}: ${message}${readAt === undefined ? '' : `; its images are as of ${moment(readAt)}`}`,
      )
  return undefined
}

/** A name that leads elsewhere on the registry of the host is shown too: a runtime has it. */
function namesOf({ names, id }: HostImage): string {
  return names.map(({ name, tag }) => (tag === '' ? name : `${name}:${tag}`)).join(', ') || id
}

function placesOf({ locations }: HostImage): string {
  return locations
    .map(({ runtime, namespace }) => (namespace === '' ? runtime : `${runtime} ${namespace}`))
    .join(', ')
}

function platformsOf({ platforms }: HostImage): string {
  return platforms
    .map(({ os, architecture, variant }) => [os, architecture, variant].filter(Boolean).join('/'))
    .join(', ')
}
