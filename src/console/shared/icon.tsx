/** Outlines of 24 by 24. */
const paths = {
  host: 'M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01',
  cluster:
    'M12 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM5.5 21a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM18.5 21a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM10.6 8.7l-3.9 7.5M13.4 8.7l3.9 7.5M8 18.5h8',
  content: 'M4 7l8-4 8 4v10l-8 4-8-4zM4 7l8 4 8-4M12 11v10',
  access: 'M8 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM2 21c0-4 3-6 6-6s6 2 6 6M16 8l2 2 4-4',
  audit: 'M6 3h9l4 4v14H6zM14 3v5h5M9 13h7M9 17h5',
  system:
    'M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.1 2.1M16.3 16.3l2.1 2.1M5.6 18.4l2.1-2.1M16.3 7.7l2.1-2.1',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  good: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM8 12.5l2.7 2.7L16 9.5',
  warning: 'M12 4L2.8 20h18.4zM12 10v4.5M12 17.2v.01',
  bad: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7.5v5.5M12 16.3v.01',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5.5M12 7.7v.01',
  off: 'M3 3l18 18M8.5 16.5a5 5 0 0 1 7 0M5 13a10 10 0 0 1 4-2.5M2 9a15 15 0 0 1 4.5-2.8M19 13a10 10 0 0 0-3-2M22 9A15 15 0 0 0 11 5M12 20h.01',
  disk: 'M3 13l3-8h12l3 8v6H3zM3 13h18M17 16h.01',
  network: 'M9 3h6v5H9zM3 16h6v5H3zM15 16h6v5h-6zM12 8v4M6 16v-4h12v4',
  upload: 'M12 16V4M7 9l5-5 5 5M4 16v4h16v-4',
  link: 'M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1',
  key: 'M14 10a5 5 0 1 0-4 4.9L12 17h2v2h2v2h4v-4z',
  terminal: 'M4 5h16v14H4zM7.5 9.5l2.5 2.5-2.5 2.5M12.5 15h4',
  packs: 'M12 3l9 5-9 5-9-5zM3 12.5l9 5 9-5M3 17l9 4.5 9-4.5',
  print: 'M7 9V3h10v6M7 17H4V9h16v8h-3M7 14h10v7H7z',
} as const

export type IconName = keyof typeof paths

/** Decoration: the text beside it says the same. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={paths[name]} />
  </svg>
)
