import type { Declaration } from '../root/room.ts'
import { uploadErrors } from '../upload/codes.ts'
import { contentErrors, bundleErrors, registryErrors } from './codes.ts'
import { Content } from './config.ts'

/** Content of this host: bundles of images, charts, programs and files, and the rules for all uploads. */
export const about = {
  errors: { ...uploadErrors, ...bundleErrors, ...contentErrors, ...registryErrors },
  config: { content: Content },
  checkReferencedFiles: async (check) => [
    ...(await (await import('./checks.ts')).checkFolder(check)),
    ...(await (await import('./checks.ts')).checkSigningKey(check)),
    ...(await import('./checks.ts')).checkRegistry(check),
  ],
  tags: { content: 'What is uploaded to this host.' },
  limited: ['content'],
  families: {
    edgehostd_content_bundles: { type: 'gauge', help: 'Published bundles.' },
    edgehostd_content_stored_bytes: {
      type: 'gauge',
      help: 'Size of the blobs of all bundles, equal ones once.',
    },
    edgehostd_content_damaged_blobs: {
      type: 'gauge',
      help: 'Blobs that are damaged on the disk and not served until an upload repairs them.',
    },
    edgehostd_content_incomplete: {
      type: 'gauge',
      help: '1 while the record of a bundle is damaged, so that no content is removed; otherwise 0.',
    },
    edgehostd_content_checked_bytes_total: {
      type: 'counter',
      help: 'Bytes of content that were read again to find damage.',
    },
    edgehostd_registry_listening: {
      type: 'gauge',
      help: '1 while the registry listens, 0 while its port cannot be opened; absent while it is turned off.',
    },
    edgehostd_registry_requests_total: {
      type: 'counter',
      help: 'Requests that the registry has answered.',
      labels: ['method', 'route', 'status'],
    },
    edgehostd_registry_sent_bytes_total: {
      type: 'counter',
      help: 'Bytes of blobs and manifests that were pulled from this host.',
    },
    edgehostd_registry_unreadable_blobs_total: {
      type: 'counter',
      help: 'Blobs that a pull found missing, cut off, altered or unreadable.',
    },
  },
  support: [
    { name: 'content-bundles.json', path: '/v1/edge-mgmt/content/bundles' },
    { name: 'content-registry.json', path: '/v1/edge-mgmt/content/registry' },
    { name: 'content-usage.json', path: '/v1/edge-mgmt/content/usage' },
  ],
} as const satisfies Declaration
