import type { Published, PublishOrder } from './protocol.ts'

/** Moves the blobs of an upload into the store. */
export async function publish({ upload }: PublishOrder): Promise<Published> {
  throw new Error(`${upload}: no bundle is published yet`)
}
