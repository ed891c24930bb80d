import { isLoopback } from '../base/address.ts'
import type { Finding, ReferenceCheck } from '../room.ts'

const path = 'content.registry.anonymous'

/** What is wrong with the section `content.registry`; undefined for nothing. */
export const describeOpenRegistry = ({
  address,
  anonymous,
}: {
  readonly address: string
  readonly anonymous: boolean
}): string | undefined =>
  anonymous && !isLoopback(address)
    ? `${path} is true, but content.registry.address is ${address}: without a password the registry listens on loopback only; set ${path} to false, or the address to 127.0.0.1`
    : undefined

/** Checks that the registry is open to the programs of this host at most. */
export function checkRegistry({ value }: ReferenceCheck): Finding[] {
  const address = value('content.registry.address')
  const message = describeOpenRegistry({
    address: typeof address === 'string' ? address : '127.0.0.1',
    anonymous: value(path) === true,
  })
  return message === undefined ? [] : [{ path, message }]
}
