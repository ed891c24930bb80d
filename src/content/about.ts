import type { Declaration } from '../room.ts'
import { uploadErrors } from '../upload/codes.ts'
import { contentErrors } from './codes.ts'
import { Content } from './config.ts'
import { bundleErrors } from './format/codes.ts'

/** Content of this host: bundles of images, charts, programs and files, and the rules for all uploads. */
export const about = {
  errors: { ...uploadErrors, ...bundleErrors, ...contentErrors },
  config: { content: Content },
  checkReferencedFiles: async (check) => [
    ...(await (await import('./check-mount.ts')).checkMount(check)),
    ...(await (await import('./check-signing-key.ts')).checkSigningKey(check)),
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
  },
  support: [
    { name: 'content-bundles.json', path: '/v1/edge-mgmt/content/bundles' },
    { name: 'content-usage.json', path: '/v1/edge-mgmt/content/usage' },
  ],
} as const satisfies Declaration
