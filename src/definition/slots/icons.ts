import { hash } from 'node:crypto'
import type { ClusterProfileDetail } from '../schemas.ts'

// Replies have the logos of packs as data URLs. The policy of the pages for browsers allows images of this host alone, and an image that a browser
// keeps need not be sent with each reply. So an icon has an address that is made of its content.

/** An icon of a pack. */
export interface Icon {
  readonly mediaType: 'image/png' | 'image/svg+xml'
  readonly bytes: Buffer
}

const dataUrl = /^data:(image\/png|image\/svg\+xml);base64,([A-Za-z0-9+/]+=*)$/

/** Bytes of all icons in memory; further ones are not served. */
const mostBytes = 4_194_304
// A definition brings its icons and takes them with it at once; the cluster has them by and by. Anyone may ask, so a miss is not dearer than a hit.
const readAgainMs = 10_000

/** The icon of a logo; `undefined` for none, and for one that is neither PNG nor SVG. Pure. */
function parseLogo(logo: string): Icon | undefined {
  const [, mediaType, base64 = ''] = dataUrl.exec(logo) ?? []
  if (mediaType === undefined) return undefined
  return { mediaType: mediaType as Icon['mediaType'], bytes: Buffer.from(base64, 'base64') }
}

const nameOf = ({ bytes }: Icon) => hash('sha256', bytes, 'hex')

/** The address of the icon of a pack, from its logo; `undefined` where it has none. Pure. */
export function iconPathOf(logo: string): string | undefined {
  const icon = parseLogo(logo)
  return icon && `/v1/edge-mgmt/icons/${nameOf(icon)}`
}

/** The icons of the definitions that this host holds, and of its cluster. */
export interface Icons {
  /** @param sha256 of the content, hex */
  find(sha256: string): Promise<Icon | undefined>
}

interface IconsOptions {
  /** The uids of the definitions in the slots. The profiles of a uid never change. */
  readonly uids: () => readonly string[]
  readonly profilesOf: (uid: string) => Promise<readonly ClusterProfileDetail[] | undefined>
  /** Profiles of the cluster; undefined without one. */
  readonly running: () => Promise<readonly ClusterProfileDetail[] | undefined>
  /** Milliseconds. */
  readonly monotonic: () => number
}

/** Reads logos when an icon is asked for, each definition once. */
export function createIcons({ uids, profilesOf, running, monotonic }: IconsOptions): Icons {
  let known: ReadonlyMap<string, Icon> = new Map()
  let ofUid: ReadonlyMap<string, readonly Icon[]> = new Map()
  let readAt = -Infinity
  let readOf = ''
  let reading: Promise<void> | undefined

  async function read(): Promise<void> {
    const next = new Map<string, readonly Icon[]>()
    const present = uids()
    for (const uid of present) next.set(uid, ofUid.get(uid) ?? iconsOf(await profilesOf(uid)))
    const found = new Map<string, Icon>()
    let bytes = 0
    for (const icon of [...next.values(), iconsOf(await running())].flat()) {
      const name = nameOf(icon)
      if (found.has(name) || bytes + icon.bytes.length > mostBytes) continue
      bytes += icon.bytes.length
      found.set(name, icon)
    }
    // What is not served is not held.
    ofUid = new Map([...next].map(([uid, icons]) => [uid, icons.filter((icon) => found.has(nameOf(icon)))]))
    known = found
    readAt = monotonic()
    readOf = present.join()
  }

  return {
    async find(sha256) {
      if (monotonic() - readAt >= readAgainMs || readOf !== uids().join())
        await (reading ??= read().finally(() => (reading = undefined)))
      return known.get(sha256)
    },
  }
}

const iconsOf = (profiles: readonly ClusterProfileDetail[] = []): Icon[] =>
  profiles.flatMap(({ packs }) => packs.flatMap(({ logo }) => parseLogo(logo) ?? []))
