import type { Database } from '../store/database.ts'
import type { Link } from './links/links.ts'
import { shownAddress } from './wire.ts'

/** The link by which the service API, peers and content speak. The choice changes no route. */
export interface Management {
  /** Name of the chosen link; empty: the one of the default route. */
  name(): string
  /** Stores a choice; an empty name takes it back. @param links the network as it is */
  choose(name: string, links: readonly Link[]): void
  /**
   * Lets the choice go along with its address, which a change that was kept may have moved to another link.
   * @returns whether another link is chosen now
   */
  follow(links: readonly Link[]): boolean
}

interface Row {
  readonly name: string
  readonly address: string
}

export function openManagement({ sql }: Pick<Database, 'sql'>): Management {
  const read = sql.prepare('SELECT name, address FROM management_link')
  const put = sql.prepare('INSERT OR REPLACE INTO management_link (one, name, address) VALUES (1, ?, ?)')
  const remove = sql.prepare('DELETE FROM management_link')
  let present = read.get() as Row | undefined

  function store(next: Row): void {
    put.run(next.name, next.address)
    present = next
  }

  return {
    name: () => present?.name ?? '',
    choose(name, links) {
      if (name !== '') store({ name, address: addressOf(name, links) })
      else {
        remove.run()
        present = undefined
      }
    },
    follow(links) {
      if (present === undefined) return false
      const next = heirOf(present, links)
      if (next.name === present.name && next.address === present.address) return false
      const hasMoved = next.name !== present.name
      store(next)
      return hasMoved
    },
  }
}

/** The link that has the role: the chosen one while it has an address, otherwise the one that has its address now. Pure. */
export function heirOf(present: Row, links: readonly Link[]): Row {
  const address = addressOf(present.name, links)
  if (address !== '') return { name: present.name, address }
  const heir = links.find((link) => link.addresses.some((each) => each.address === present.address))
  // Without one the choice waits for its link, as one that is unplugged.
  return heir === undefined ? present : { name: heir.name, address: present.address }
}

function addressOf(name: string, links: readonly Link[]): string {
  const link = links.find((each) => each.name === name)
  return (link === undefined ? undefined : shownAddress(link)?.address) ?? ''
}
