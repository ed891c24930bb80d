import type { Ground, Room } from '../room.ts'
import type { ContentSettings } from './config.ts'
import { contentRoutes } from './routes.ts'
import { noteSigningKey } from './signing-key-store.ts'
import { readSigningKey } from './signing.ts'

/**
 * What every upload to this host has to follow.
 * @throws SigningKeyUnusable
 */
export function createUploadRoom(ground: Ground<{ readonly content: ContentSettings }>): Room {
  const key = readSigningKey(ground.config.content.signing.publicKey)
  const since = noteSigningKey(key, ground)
  return {
    async routes(app) {
      await app.register(contentRoutes, { signing: key && { key, since: since ?? ground.clock.now() } })
    },
  }
}
